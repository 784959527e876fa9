// The folder that a command fills.
#pragma once

#include <string>

#include "base/status.h"

namespace hadal {

// Makes the folder at `path` and its parents. kInvalidArgument when something lies in it already,
// unless `may_overwrite`; kIo with the system's reason.
Status MakeOutputFolder(const std::string& path, bool may_overwrite);

}  // namespace hadal
