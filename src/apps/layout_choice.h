// Which chat layout a command uses: the one that was asked for, or the model's own.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "base/status.h"
#include "text/chat_layout.h"
#include "text/tokenizer.h"

namespace hadal {

// --layout NAME; other names than those of layouts are wrong usage. `*name` stays empty without it.
void AddLayoutOption(CLI::App* command, std::string* name);

// From the files of a model folder: chat template, model_type and vocabulary. `tokenizer` may be
// null when the folder has none.
Result<ChatLayoutChoice> LayoutOfModel(const std::string& folder, const Tokenizer* tokenizer);

}  // namespace hadal
