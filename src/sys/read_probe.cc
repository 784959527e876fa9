#include "sys/read_probe.h"

#include <algorithm>

#include "sys/memory.h"

namespace hadal {
namespace {

// So much goes to a worker at a time.
constexpr int64_t kChunk = int64_t{1} << 20;
constexpr int64_t kChunkWords = kChunk / static_cast<int64_t>(sizeof(uint64_t));

// Adds up all words; four chains, so that additions do not bound it. REQUIRES: count % 4 == 0.
uint64_t ReadAll(const uint64_t* words, int64_t count) {
  uint64_t a = 0, b = 0, c = 0, d = 0;
  for (int64_t i = 0; i < count; i += 4) {
    a += words[i];
    b += words[i + 1];
    c += words[i + 2];
    d += words[i + 3];
  }
  return a + b + c + d;
}

}  // namespace

ReadProbe::ReadProbe(int64_t bytes, ThreadPool* pool) {
  bytes = (bytes + kChunk - 1) / kChunk * kChunk;
  data_ = static_cast<uint64_t*>(AllocatePages(bytes));
  if (data_ == nullptr) return;
  bytes_ = bytes;
  // Untouched pages would all be the same page of zeros.
  pool->ParallelFor(static_cast<int>(bytes / kChunk), [this](int chunk, int) {
    std::fill_n(data_ + chunk * kChunkWords, kChunkWords, uint64_t{1});
  });
}

ReadProbe::~ReadProbe() {
  if (data_ != nullptr) FreePages(data_, bytes_);
}

void ReadProbe::Pass(ThreadPool* pool) {
  pool->ParallelFor(static_cast<int>(bytes_ / kChunk), [this](int chunk, int) {
    total_.fetch_add(ReadAll(data_ + chunk * kChunkWords, kChunkWords), std::memory_order_relaxed);
  });
}

}  // namespace hadal
