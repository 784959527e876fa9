#include "tensor/turn_blocks.h"

#include <cstring>

#include "base/check.h"

namespace hadal {
namespace {

constexpr int kRows = 8;

// Words [begin, end) of kBytes bytes of eight blocks, whose rows are row_bytes apart.
template <int kBytes>
void TurnWords(const std::byte* from, int64_t row_bytes, int begin, int end, std::byte* to) {
  for (int offset = begin; offset < end; offset += kBytes) {
    for (int row = 0; row < kRows; ++row) {
      std::memcpy(to + kRows * offset + kBytes * row, from + row * row_bytes + offset, kBytes);
    }
  }
}

}  // namespace

void TurnBlocks(QuantFormat format, const std::byte* from, int num_rows, int cols, std::byte* to) {
  HADAL_CHECK(IsBlocked(format) && num_rows % kRows == 0);
  const BlockSize size = SizeOfBlock(format);
  const int64_t row_bytes = RowBytesOf(format, cols);
  int fours_begin = 0, fours_end = size.bytes;
  while (WordOfByte(format, fours_begin).bytes == 2) fours_begin += 2;
  while (WordOfByte(format, fours_end - 1).bytes == 2) fours_end -= 2;
  for (int row = 0; row < num_rows; row += kRows, from += kRows * row_bytes) {
    for (int64_t block = 0; block < row_bytes; block += size.bytes, to += kRows * size.bytes) {
      TurnWords<2>(from + block, row_bytes, 0, fours_begin, to);
      TurnWords<4>(from + block, row_bytes, fours_begin, fours_end, to);
      TurnWords<2>(from + block, row_bytes, fours_end, size.bytes, to);
    }
  }
}

}  // namespace hadal
