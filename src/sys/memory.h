// Memory in whole pages: aligned, zeroed, in huge pages where the system gives them.
#pragma once

#include <cstdint>

namespace hadal {

// Null when the system refuses. REQUIRES: bytes > 0.
void* AllocatePages(int64_t bytes);
void FreePages(void* address, int64_t bytes);

}  // namespace hadal
