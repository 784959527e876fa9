// Replies of /v1/chat/completions.
#pragma once

#include <memory>

#include "server/reply_writer.h"

namespace hadal {

// One JSON object at the end.
std::unique_ptr<ReplyWriter> MakePlainChatWriter(const ReplySetting& setting);

// Server-sent events: the role first, then deltas, finish reasons, the usage if it is wanted, and
// [DONE].
std::unique_ptr<ReplyWriter> MakeStreamedChatWriter(const ReplySetting& setting);

}  // namespace hadal
