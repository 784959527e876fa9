// config.json of the published models, for checkpoints of their shape.
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/status.h"

namespace hadal {

// "v2-lite", "v2", "v3", "v3.2".
const std::vector<std::string>& ModelShapeNames();

// The config of a published model by the name of its shape, or of the file at that path. kNotFound,
// kIo, kCorrupt.
Result<Json> ReadModelShape(const std::string& name_or_path);

}  // namespace hadal
