// The keys and values of a GGUF file. Internal to formats/.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "formats/gguf.h"
#include "formats/gguf_reader.h"

namespace hadal {

// Reads `count` pairs into file->metadata. kCorrupt as in ParseGguf.
Status ReadGgufMetadata(uint64_t count, GgufReader* reader, GgufFile* file);

}  // namespace hadal
