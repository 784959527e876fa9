// An engine for a command.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "engine/engine.h"

namespace hadal {

// The tokenizer is looked for beside the model. `layout` is a layout's name, or empty for the
// model's own.
Result<std::unique_ptr<Engine>> OpenEngine(EngineOptions options, const std::string& layout);

}  // namespace hadal
