// Replies of /v1/completions.
#pragma once

#include <memory>

#include "server/reply_writer.h"

namespace hadal {

std::unique_ptr<ReplyWriter> MakePlainCompletionWriter(const ReplySetting& setting);
std::unique_ptr<ReplyWriter> MakeStreamedCompletionWriter(const ReplySetting& setting);

}  // namespace hadal
