#include "convert/weight_rounding.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/quote.h"
#include "base/types.h"
#include "tensor/group_tiles.h"
#include "tensor/scalar.h"

namespace hadal {
namespace {

constexpr int64_t kChunkFloats = int64_t{1} << 23;  // 32 MB
constexpr float kLargestE4m3 = 448.0f;

// Whole tiles (and FP8 blocks) of rows that fit into a chunk; one at least.
int RowsPerChunk(int cols, int multiple) {
  const auto rows = static_cast<int>(std::min<int64_t>(kChunkFloats / cols, 1 << 20));
  return std::max(multiple, rows / multiple * multiple);
}

}  // namespace

Result<std::span<const float>> WeightRounding::Decode(const QuantizedMatrix& source,
                                                      const std::string& name, int first,
                                                      int count) {
  const auto size = static_cast<size_t>(count) * static_cast<size_t>(source.cols);
  decoded_.resize(std::max(decoded_.size(), size));
  row_ids_.resize(static_cast<size_t>(count));
  std::iota(row_ids_.begin(), row_ids_.end(), first);
  backend_->Embed(row_ids_, source, {decoded_.data(), count, source.cols, source.cols});
  for (size_t i = 0; i < size; ++i) {
    if (std::isfinite(decoded_[i])) continue;
    return Status::Corrupt(
        fmt::format("tensor {}: row {}, column {}: expected a finite number, "
                    "found {}",
                    Quoted(name), static_cast<size_t>(first) + i / static_cast<size_t>(source.cols),
                    i % static_cast<size_t>(source.cols), decoded_[i]));
  }
  return std::span<const float>(decoded_.data(), size);
}

Result<std::vector<std::byte>> WeightRounding::ToTiles(const QuantizedMatrix& source,
                                                       const std::string& name,
                                                       const GroupShape& shape,
                                                       FeedbackRounder* rounder) {
  std::vector<std::byte> tiles(static_cast<size_t>(GroupedBytes(shape, source.rows, source.cols)));
  const int per_chunk = RowsPerChunk(source.cols, kTileRows);
  for (int first = 0; first < source.rows; first += per_chunk) {
    const int count = std::min(per_chunk, source.rows - first);
    ASSIGN_OR_RETURN(const std::span<const float> values, Decode(source, name, first, count));
    if (rounder != nullptr) {
      rounder->Round(shape, first, count, values.data(), tiles);
      continue;
    }
    pool_->ParallelFor(CeilDiv(count, kTileRows), [&](int tile, int) {
      const int row = tile * kTileRows;
      RoundRows(shape, source.cols, first + row, std::min(kTileRows, count - row),
                values.data() + int64_t{row} * source.cols, ScaleChoice::kSearch, tiles);
    });
  }
  return tiles;
}

Result<WeightRounding::Fp8Matrix> WeightRounding::ToFp8(const QuantizedMatrix& source,
                                                        const std::string& name) {
  Fp8Matrix result;
  result.codes.resize(static_cast<size_t>(source.rows) * static_cast<size_t>(source.cols));
  const int block_cols = CeilDiv(source.cols, kF8BlockSize);
  result.scales.resize(static_cast<size_t>(CeilDiv(source.rows, kF8BlockSize)) *
                       static_cast<size_t>(block_cols));
  const int per_chunk = RowsPerChunk(source.cols, kF8BlockSize);
  for (int first = 0; first < source.rows; first += per_chunk) {
    const int count = std::min(per_chunk, source.rows - first);
    ASSIGN_OR_RETURN(const std::span<const float> values, Decode(source, name, first, count));
    pool_->ParallelFor(CeilDiv(count, kF8BlockSize) * block_cols, [&](int block, int) {
      const int row_begin = block / block_cols * kF8BlockSize;
      const int col_begin = block % block_cols * kF8BlockSize;
      const int row_end = std::min(count, row_begin + kF8BlockSize);
      const int col_end = std::min(source.cols, col_begin + kF8BlockSize);
      float largest = 0.0f;
      for (int row = row_begin; row < row_end; ++row) {
        for (int col = col_begin; col < col_end; ++col) {
          const auto at = static_cast<size_t>(int64_t{row} * source.cols + col);
          largest = std::max(largest, std::fabs(values[at]));
        }
      }
      const float scale = largest > 0.0f ? largest / kLargestE4m3 : 1.0f;
      const auto scale_at = static_cast<size_t>(
          (first + row_begin) / kF8BlockSize * int64_t{block_cols} + block % block_cols);
      result.scales[scale_at] = scale;
      for (int row = row_begin; row < row_end; ++row) {
        for (int col = col_begin; col < col_end; ++col) {
          const auto at = static_cast<size_t>(int64_t{row} * source.cols + col);
          const auto out = static_cast<size_t>(int64_t{first + row} * source.cols + col);
          result.codes[out] = static_cast<std::byte>(FloatToE4m3(values[at] / scale));
        }
      }
    });
  }
  return result;
}

}  // namespace hadal
