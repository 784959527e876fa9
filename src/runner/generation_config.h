// generation_config.json: how a checkpoint's makers want tokens to be drawn, and where answers end.
#pragma once

#include <string>

#include "base/json_fwd.h"
#include "base/status.h"
#include "runner/model_runner.h"

namespace hadal {

// Sets info->default_sampling and adds to info->eos_tokens (a number or a list; ids that are there
// already are not repeated). Null: nothing changes. "do_sample": false means greedy whatever else
// is said. kCorrupt names `what` and the key.
Status ReadGenerationConfig(const Json& config, const std::string& what, ModelInfo* info);

}  // namespace hadal
