// The name of the JSON type, for headers that only pass it on: base/json.h takes a second to
// compile.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace hadal {

using Json = nlohmann::ordered_json;  // keys keep their order: prompts and replies depend on it

}  // namespace hadal
