// A panel of a blocked weight: sixteen outputs and up to 256 columns, turned once for all rows of a
// product.
#pragma once

#include <cstdint>

#include "kernels/avx2/block_sums.h"
#include "kernels/avx2/turned_block.h"

namespace hadal::avx2 {
namespace {

constexpr int kPanelCols = 256;

// Sixteen outputs and up to 256 columns, turned once for all rows.
template <QuantFormat format>
class BlockPanel {
 public:
  static constexpr bool kHasMin = UseOfMin(format) != MinUse::kNone;

  // Bytes of outputs 0 to 7, then of 8 to 15, of four columns of a run.
  const char* Codes(int run, int step) const {
    return codes_ + (run * kStepsPerRun + step) * 2 * kRegisterBytes;
  }
  // Of a group of columns, [16].
  const float* Scales(int group) const { return scales_ + group * kTileRows; }
  const float* Mins(int group) const { return mins_ + (kHasMin ? group * kTileRows : 0); }

  // Takes `num_blocks` blocks of eight outputs as half 0 or 1 of the panel.
  template <class Rows>
  [[gnu::noinline]] void Fill(Rows rows, int num_blocks, int half) {
    for (int b = 0; b < num_blocks; ++b) {
      TurnedBlock<format, Rows> block(rows);
      const int run = b * kRunsPerBlock;
      FillRuns<0>(&block, run, half);
      FillScales<0>(block, run * kParts<format>, half);
      rows = rows.Plus(SizeOfBlock(format).bytes);
    }
  }

 private:
  static constexpr int kRunsPerBlock = SizeOfBlock(format).elements / kRun;

  template <int run, class Block>
  HADAL_INLINE void FillRuns(Block* block, int first_run, int half) {
    if constexpr (run < kRunsPerBlock) {
      block->template Start<run>();
      char* to = codes_ + ((first_run + run) * kStepsPerRun * 2 + half) * kRegisterBytes;
#pragma GCC unroll 8
      for (int step = 0; step < kStepsPerRun; ++step) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(to + 2 * kRegisterBytes * step),
                           block->template Codes<run>(step));
      }
      FillRuns<run + 1>(block, first_run, half);
    }
  }
  template <int group, class Block>
  HADAL_INLINE void FillScales(const Block& block, int first_group, int half) {
    if constexpr (group < kRunsPerBlock * kParts<format>) {
      const int at = (first_group + group) * kTileRows + 8 * half;
      _mm256_store_ps(scales_ + at, block.template Scale<group>());
      if constexpr (kHasMin) _mm256_store_ps(mins_ + at, block.template Min<group>());
      FillScales<group + 1>(block, first_group, half);
    }
  }

  alignas(32) char codes_[kPanelCols * kTileRows];
  alignas(32) float scales_[kPanelCols / ScaleElements(format) * kTileRows];
  alignas(32) float mins_[kHasMin ? kPanelCols / ScaleElements(format) * kTileRows : 1];
};

}  // namespace
}  // namespace hadal::avx2
