// Reads memory as fast as plain code can, to measure the limit of decoding.
#pragma once

#include <atomic>
#include <cstdint>

#include "sys/thread_pool.h"

namespace hadal {

class ReadProbe {
 public:
  // Takes and touches about `bytes` of memory; bytes() is 0 when there is none. For numbers that
  // say something about memory, well more than the caches hold. REQUIRES: bytes > 0.
  ReadProbe(int64_t bytes, ThreadPool* pool);
  ~ReadProbe();
  ReadProbe(const ReadProbe&) = delete;
  ReadProbe& operator=(const ReadProbe&) = delete;

  int64_t bytes() const { return bytes_; }

  // All workers together read every byte once.
  void Pass(ThreadPool* pool);

 private:
  uint64_t* data_ = nullptr;
  int64_t bytes_ = 0;
  std::atomic<uint64_t> total_{0};  // so that the reading has a use
};

}  // namespace hadal
