// One step as index arrays: what BatchBuilder makes of a plan. Rows of all activations are the
// step's new tokens.
#pragma once

#include <atomic>
#include <span>

#include "backend/backend.h"
#include "tensor/matrix.h"

namespace hadal {

struct ForwardBatch {
  IndexView tokens;     // [tokens]
  IndexView positions;  // [tokens]
  IndexView slots;      // [tokens]: rows of the latent cache that the new tokens take
  std::span<const AttentionRange> ranges;  // cover all rows, in order
  bool has_sparse_range = false;
  const std::atomic<bool>* stop = nullptr;  // set by another thread: leave as soon as may be

  bool is_stopped() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
  int num_tokens() const { return static_cast<int>(tokens.size()); }
};

}  // namespace hadal
