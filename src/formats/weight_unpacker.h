// Packed matrices of exports in the forms that kernels compute with, without changing a value.
#pragma once

#include <memory>
#include <optional>

#include "base/status.h"
#include "formats/packed_weight.h"
#include "tensor/block_layout.h"
#include "tensor/buffer.h"
#include "tensor/quantized_matrix.h"

namespace hadal {

struct UnpackedMatrix {
  QuantizedMatrix matrix;  // points into `memory`
  Buffer memory;
};

class WeightUnpacker {
 public:
  // REQUIRES: num_threads >= 1.
  explicit WeightUnpacker(int num_threads);
  ~WeightUnpacker();
  WeightUnpacker(const WeightUnpacker&) = delete;
  WeightUnpacker& operator=(const WeightUnpacker&) = delete;

  // The grouped format that holds every value; nothing where there is none. Reads all scales and
  // zero points, and of eight bits all codes. kCorrupt for a scale that is not finite.
  Result<std::optional<GroupShape>> FindExactTiles(const PackedWeight& weight);

  // Unpacks to that; to blocks of Q8_0 where only the code -128 stands against it; else, or when
  // floats are asked for, to float32: scales that binary16 cannot hold, eight bits with zero
  // points, columns in the order of activations, groups or columns in multiples of less than 32.
  // kCorrupt for a scale that is not finite; kResourceExhausted when memory is short.
  Result<UnpackedMatrix> Unpack(const PackedWeight& weight, bool wants_floats);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hadal
