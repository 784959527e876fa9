// `hadal inspect` of a GGUF file: its keys and tensors, as a container.
#pragma once

#include <string>

#include "base/status.h"

namespace hadal {

// Whether the path names a file that is or claims to be GGUF, and holds no model that could be
// opened: a part that is not the first, another architecture, none of a
// model's keys, or a file that breaks the rules.
bool IsMereGguf(const std::string& path);

// Checks the whole container and prints it. Errors as for MappedFile::Open and ParseGguf.
Status InspectGguf(const std::string& path, bool wants_json);

}  // namespace hadal
