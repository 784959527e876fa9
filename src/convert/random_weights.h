// Random elements of the formats of weights, made as fast as they can be written: 16 random bits
// pick two bytes from a table, so that no number passes through float. What lies at a place of a
// tensor depends on the stream and the place alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "tensor/block_layout.h"

namespace hadal {

// The stream of a tensor.
uint64_t RandomStream(uint64_t seed, std::string_view name);

class RandomElements {
 public:
  // Elements of kBF16 with this standard deviation, or codes of the other formats; values and their
  // negatives are equally frequent. kF8Block128, kInt8Group and kInt4Group ignore `deviation`:
  // their scales carry it. REQUIRES: one of these four formats.
  static RandomElements Create(QuantFormat format, double deviation = 1.0);

  // The standard deviation of the codes (without a scale; of kInt4Group about 8), or of the
  // elements.
  double deviation() const { return deviation_; }

  // Fills bytes [first_byte, ...) of stream `stream`. REQUIRES: first_byte is a multiple of 8.
  void Fill(uint64_t stream, int64_t first_byte, std::span<std::byte> bytes) const;

 private:
  using Table = std::array<uint16_t, 65536>;
  std::unique_ptr<Table> table_;
  double deviation_ = 0.0;
};

// Tiles [first_tile, ...) of a grouped matrix, as many as fill `tiles`: codes of `codes`, scales
// near `scale` (a quarter up or down), zero points 8. Rows from num_rows on have scale 0. REQUIRES:
// `codes` are of the format of `shape`.
void FillRandomTiles(const RandomElements& codes, const GroupShape& shape, int num_rows, int cols,
                     double scale, uint64_t stream, int64_t first_tile, std::span<std::byte> tiles);

}  // namespace hadal
