// Flags of every command that runs a model, and what such commands read and show.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/status.h"
#include "base/types.h"
#include "runner/model_runner.h"

namespace hadal {

// The positional MODEL; left out, it is the bundled model.
void AddModelArgument(CLI::App* command, std::string* path);

// --threads, --kernels, --form, --weights, --cache-type, --activations, --chunk.
void AddRunnerFlags(CLI::App* command, RunnerOptions* options);

// A JSON list of token ids, not empty. kCorrupt names the file and the entry.
Result<std::vector<TokenId>> ReadTokensFile(const std::string& path);

}  // namespace hadal
