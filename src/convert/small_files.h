// What a model folder holds beside its weights.
#pragma once

#include <string>

#include "base/status.h"

namespace hadal {

// Copies tokenizer, generation settings, templates, licence from one folder to another: all small
// files but the config, the index, and weights of any kind. kIo.
Status CopySmallFiles(const std::string& from, const std::string& to);

}  // namespace hadal
