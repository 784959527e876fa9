// The rotary keys of config.json in both spellings: rope_scaling with rope_theta beside it, and
// rope_parameters with rope_theta inside. Specification, 1.2.
#pragma once

#include <string>

#include "base/json_fwd.h"
#include "base/status.h"
#include "model/model_config.h"

namespace hadal {

struct RopeConfig {
  double theta = 10000.0;
  RopeScaling scaling;
};

// A key that would change the angles is never passed over: kUnsupported for an unknown type or an
// option that the engine does not know, kCorrupt for a missing or contradictory value.
Result<RopeConfig> ReadRopeConfig(const Json& config, const std::string& what);

}  // namespace hadal
