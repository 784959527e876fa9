#include "sys/memory.h"

#include <sys/mman.h>

namespace hadal {

void* AllocatePages(int64_t bytes) {
  void* address = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return nullptr;
#ifdef MADV_HUGEPAGE
  // Advice only: fewer page-table walks when weights and caches are streamed.
  madvise(address, static_cast<size_t>(bytes), MADV_HUGEPAGE);
#endif
  return address;
}

void FreePages(void* address, int64_t bytes) { munmap(address, static_cast<size_t>(bytes)); }

}  // namespace hadal
