// Results of tools belong to calls by their ids; the layouts know them by their order only.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/chat_message.h"

namespace hadal {

// Puts the results behind each message with calls into the order of its calls. kInvalidArgument,
// beginning with `id_field`: a result of no call. Results without an id keep their place.
Status OrderToolResults(std::string_view id_field, std::vector<ChatMessage>* messages);

}  // namespace hadal
