// Replies of /v1/messages, in Anthropic's form.
#pragma once

#include <memory>

#include "server/reply_writer.h"

namespace hadal {

// One message at the end.
std::unique_ptr<ReplyWriter> MakePlainMessagesWriter(const ReplySetting& setting);

// message_start, then for each block its start, deltas and stop, then message_delta, message_stop.
std::unique_ptr<ReplyWriter> MakeStreamedMessagesWriter(const ReplySetting& setting);

}  // namespace hadal
