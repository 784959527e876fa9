// Replies of /v1/responses.
#pragma once

#include <memory>

#include "server/reply_writer.h"

namespace hadal {

std::unique_ptr<ReplyWriter> MakePlainResponsesWriter(const ReplySetting& setting);

// response.created, then for each item of the output what is added, the deltas and what is done,
// then response.completed or response.incomplete.
std::unique_ptr<ReplyWriter> MakeStreamedResponsesWriter(const ReplySetting& setting);

}  // namespace hadal
