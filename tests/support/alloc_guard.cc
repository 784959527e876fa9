#include "tests/support/alloc_guard.h"

#include <cstdlib>
#include <new>

namespace {
thread_local int64_t num_allocations = 0;

void* Allocate(size_t bytes) {
  ++num_allocations;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) std::abort();
  return memory;
}

void* AllocateAligned(size_t bytes, std::align_val_t alignment) {
  ++num_allocations;
  const size_t align = static_cast<size_t>(alignment);
  void* memory = std::aligned_alloc(align, (bytes + align) / align * align);
  if (memory == nullptr) std::abort();
  return memory;
}
}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes); }
void* operator new[](size_t bytes) { return Allocate(bytes); }
void* operator new(size_t bytes, std::align_val_t align) { return AllocateAligned(bytes, align); }
void* operator new[](size_t bytes, std::align_val_t align) { return AllocateAligned(bytes, align); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return Allocate(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return Allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace hadal {
int64_t AllocGuard::Total() { return num_allocations; }
}  // namespace hadal
