// Flags of the commands that generate text: how to guess ahead. docs/speculation.md.
#pragma once

#include <CLI/CLI.hpp>

#include "engine/engine.h"

namespace hadal {

// --spec, --spec-tokens, --spec-depth, --spec-accept, --draft-model. They set
// options->speculation, and options->runner.drafting to what that needs.
void AddSpeculationFlags(CLI::App* command, EngineOptions* options);

}  // namespace hadal
