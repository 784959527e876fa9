// Rounds whole matrices with all cores and bounded memory: a few million floats at a time.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "convert/feedback_rounder.h"
#include "sys/thread_pool.h"
#include "tensor/group_rounding.h"
#include "tensor/quantized_matrix.h"

namespace hadal {

class WeightRounding {
 public:
  WeightRounding(Backend* backend, ThreadPool* pool) : backend_(backend), pool_(pool) {}

  // The tiles of a matrix. With a rounder for the matrix's inputs errors are weighed by them and
  // answer each other; without one (null) each group gets the scale with the smallest squared
  // error. kCorrupt names the tensor and the first element that is not finite.
  Result<std::vector<std::byte>> ToTiles(const QuantizedMatrix& source, const std::string& name,
                                         const GroupShape& shape, FeedbackRounder* rounder);

  // E4M3 codes and float scales: largest / 448 of each 128 x 128 block. Specification, 7.3.
  struct Fp8Matrix {
    std::vector<std::byte> codes;
    std::vector<float> scales;
  };
  Result<Fp8Matrix> ToFp8(const QuantizedMatrix& source, const std::string& name);

 private:
  // Rows [first, first + count) as floats.
  Result<std::span<const float>> Decode(const QuantizedMatrix& source, const std::string& name,
                                        int first, int count);

  Backend* backend_;
  ThreadPool* pool_;
  std::vector<float> decoded_;
  std::vector<int32_t> row_ids_;
};

}  // namespace hadal
