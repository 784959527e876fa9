// Memory that ends where the next page may not be touched: whoever reads or writes one byte too far
// is stopped by the processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"

namespace hadal::testing {

// `count` values of T, the last of them right before an inaccessible page.
template <class T>
class Guarded {
 public:
  explicit Guarded(int64_t count) : count_(count) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    mapped_ = (bytes + page - 1) / page * page + page;
    base_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HADAL_CHECK(base_ != MAP_FAILED);
    char* guard = static_cast<char*>(base_) + mapped_ - page;
    HADAL_CHECK(mprotect(guard, page, PROT_NONE) == 0);
    data_ = reinterpret_cast<T*>(guard - bytes);
  }
  Guarded(Guarded&& other) noexcept
      : base_(other.base_), mapped_(other.mapped_), data_(other.data_), count_(other.count_) {
    other.base_ = nullptr;
  }
  Guarded& operator=(Guarded&&) = delete;
  ~Guarded() {
    if (base_ != nullptr) munmap(base_, mapped_);
  }

  T* data() const { return data_; }
  int64_t size() const { return count_; }
  T& operator[](int64_t idx) const { return data_[idx]; }
  T* begin() const { return data_; }
  T* end() const { return data_ + count_; }

 private:
  void* base_ = nullptr;
  size_t mapped_ = 0;
  T* data_ = nullptr;
  int64_t count_ = 0;
};

using Random = std::mt19937;

inline Guarded<float> RandomFloats(int64_t count, Random* random, float spread = 1.0f) {
  Guarded<float> values(count);
  std::normal_distribution<float> normal(0.0f, spread);
  for (float& value : values) value = normal(*random);
  return values;
}

}  // namespace hadal::testing
