// Flags of how an engine keeps and schedules what it serves.
#pragma once

#include <CLI/CLI.hpp>

#include "engine/engine.h"

namespace hadal {

// --cache-dir, --cache-dir-mb.
void AddCacheDirFlags(CLI::App* command, EngineOptions* options);

// --max-sequences, --cache-tokens, --max-step-ms, --max-prompt-step-ms, --aging-ms, --max-pending,
// --max-pending-tokens, --saved-mb, --volatile-lines, --trace, and those of AddCacheDirFlags.
void AddEngineFlags(CLI::App* command, EngineOptions* options);

}  // namespace hadal
