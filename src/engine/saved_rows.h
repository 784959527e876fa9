// Cache rows of sequences that are not in the cache: of those that were preempted, and of prefixes
// that were read from disk for a sequence that still waits. Engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

#include "base/status.h"
#include "base/types.h"
#include "batch/batch_plan.h"
#include "runner/model_runner.h"

namespace hadal {

// Rows of whole blocks, one block after the other.
struct BlockRows {
  std::unique_ptr<std::byte[]> bytes;
  int first_block = 0, num_blocks = 0;  // of the sequence
};

class SavedRows {
 public:
  // `runner` must outlive it.
  explicit SavedRows(ModelRunner* runner) : runner_(runner) {}

  int64_t bytes() const { return num_blocks_ * runner_->info().block_bytes; }
  int size() const { return static_cast<int>(rows_.size()); }

  void Add(SequenceId id, BlockRows rows);
  void Erase(SequenceId id);

  // Takes the rows of plan.saves[i] out of the cache. kResourceExhausted: no memory.
  Status Save(const BatchPlan& plan, const BlockMove& move);

  // Brings rows back and forgets them. REQUIRES: they were added or saved.
  Status Restore(const BatchPlan& plan, const BlockMove& move);

 private:
  ModelRunner* const runner_;
  std::unordered_map<SequenceId, BlockRows> rows_;
  int64_t num_blocks_ = 0;
};

}  // namespace hadal
