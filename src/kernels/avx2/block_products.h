// Products of blocked weights with rows rounded to bytes. Lanes are outputs. Few rows take the
// weights from registers, many from a panel in the first cache; both add the same exact sums in the
// same order.
#pragma once

#include "kernels/avx2/block_panel.h"
#include "kernels/avx2/tile_totals.h"
#include "kernels/avx2/turned_block.h"

namespace hadal::avx2 {
namespace {

constexpr int kRowTile = 4;    // eight sums in registers
constexpr int kRowBlock = 64;  // whose totals (4 KB) and a panel's x stay in the near caches

// Few rows: codes go from the turned block into the products, without a panel.
template <QuantFormat format, class Rows, int kRows>
class FewRows {
 public:
  // totals [kRows, 16], of which the first eight are written: the products of eight outputs.
  [[gnu::noinline]] static void Multiply(Rows rows, int num_blocks, const char* (&x)[kRows],
                                         float* totals) {
    constexpr int kBytes = SizeOfBlock(format).bytes;
    Vec total[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) total[r] = Set(0.0f);
    for (int b = 0; b < num_blocks; ++b) {
      TurnedBlock<format, Rows> block(rows);
      AddRuns<0>(rows, &block, x, total);
      rows = rows.Plus(kBytes);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) _mm256_store_ps(totals + r * kTileRows, total[r]);
  }

 private:
  template <int run>
  HADAL_INLINE static void AddRuns(const Rows& rows, TurnedBlock<format, Rows>* block,
                                   const char* (&x)[kRows], Vec (&total)[kRows]) {
    constexpr int kRuns = TurnedBlock<format, Rows>::kRuns;
    if constexpr (run < kRuns) {
      // A part beside each run: all at once would fill the queues that loads wait in.
      rows.template Prefetch<SizeOfBlock(format).bytes, run, kRuns>();
      block->template Start<run>();
      AddParts<run, 0>(*block, x, total);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) x[r] += kRoundedRunBytes;
      AddRuns<run + 1>(rows, block, x, total);
    }
  }
  template <int run, int part>
  HADAL_INLINE static void AddParts(const TurnedBlock<format, Rows>& block,
                                    const char* const (&x)[kRows], Vec (&total)[kRows]) {
    if constexpr (part < kParts<format>) {
      constexpr int kGroup = run * kParts<format> + part;
      constexpr int kFirstStep = part * ScaleElements(format) / kStepCols;
      const auto codes = [&](int step, int) __attribute__((always_inline)) {
        return block.template Codes<run>(kFirstStep + step);
      };
      const BlockSums<kRows, 1> sums = SumGroup<format, kRows, 1, part>(codes, x);
      const Vec scale = block.template Scale<kGroup>();
      Vec min = Set(0.0f);
      if constexpr (UseOfMin(format) != MinUse::kNone) min = block.template Min<kGroup>();
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        total[r] = AddToTotal<format, part>(sums.lanes[r][0], scale, min, x[r], total[r]);
      }
      AddParts<run, part + 1>(block, x, total);
    }
  }
};

// totals [kRows, 16] += the products of a panel with kRows rows, which begin at `x`.
template <QuantFormat format, int kRows>
class ManyRows {
 public:
  [[gnu::noinline]] static void Add(const BlockPanel<format>& panel, int num_runs,
                                    const char* (&x)[kRows], float* totals) {
    for (int run = 0; run < num_runs; ++run) {
      AddParts<0>(panel, run, x, totals);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) x[r] += kRoundedRunBytes;
    }
  }

 private:
  template <int part>
  HADAL_INLINE static void AddParts(const BlockPanel<format>& panel, int run,
                                    const char* const (&x)[kRows], float* totals) {
    if constexpr (part < kParts<format>) {
      const int group = run * kParts<format> + part;
      const char* at = panel.Codes(run, part * ScaleElements(format) / kStepCols);
      const auto codes = [&](int step, int half) __attribute__((always_inline)) {
        return LoadInts(at + (2 * step + half) * kRegisterBytes);
      };
      const BlockSums<kRows, 2> sums = SumGroup<format, kRows, 2, part>(codes, x);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          float* to = totals + r * kTileRows + 8 * half;
          const Vec scale = _mm256_load_ps(panel.Scales(group) + 8 * half);
          Vec min = Set(0.0f);
          if constexpr (BlockPanel<format>::kHasMin) {
            min = _mm256_load_ps(panel.Mins(group) + 8 * half);
          }
          _mm256_store_ps(to, AddToTotal<format, part>(sums.lanes[r][half], scale, min, x[r],
                                                       _mm256_load_ps(to)));
        }
      }
      AddParts<part + 1>(panel, run, x, totals);
    }
  }
};

// Sixteen outputs, fewer at the end, and their columns.
struct TileOfRows {
  const char* data;
  int64_t row_bytes;
  int count, cols;
};

// The panel's columns of the last outputs of a weight, filled up with zeros to sixteen, so that
// nothing behind them is read.
template <QuantFormat format>
struct FilledUp {
  static constexpr int kBytes =
      kPanelCols / SizeOfBlock(format).elements * SizeOfBlock(format).bytes;
  char rows[kTileRows * kBytes];

  void Copy(const TileOfRows& tile, int64_t offset, int bytes) {
    __builtin_memset(rows, 0, sizeof(rows));
    for (int o = 0; o < tile.count; ++o) {
      __builtin_memcpy(rows + o * kBytes, tile.data + o * tile.row_bytes + offset,
                       static_cast<size_t>(bytes));
    }
  }
};

// Where kRows rows begin, from row t of the product on.
template <int kRows>
HADAL_INLINE void FindRows(const RoundedMatMulArgs& args, int t, int64_t offset,
                           const char* (&x)[kRows]) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const int64_t row = args.row_ids != nullptr ? args.row_ids[t + r] : t + r;
    x[r] = reinterpret_cast<const char*>(args.x) + row * args.row_bytes + offset;
  }
}

template <QuantFormat format, class Rows, int kRows>
void MultiplyFew(const RoundedMatMulArgs& args, const TileOfRows& tile, int t, float* totals) {
  for (int half = 0; half < 2; ++half) {
    const char* x[kRows];
    FindRows(args, t, 0, x);
    const Rows rows(tile.data + 8 * half * tile.row_bytes, tile.row_bytes);
    FewRows<format, Rows, kRows>::Multiply(rows, tile.cols / SizeOfBlock(format).elements, x,
                                           totals + 8 * half);
  }
}

template <QuantFormat format, int kRows>
void AddMany(const BlockPanel<format>& panel, int first_col, int num_runs,
             const RoundedMatMulArgs& args, int t, float* totals) {
  const char* x[kRows];
  FindRows(args, t, int64_t{first_col / kRun} * kRoundedRunBytes, x);
  ManyRows<format, kRows>::Add(panel, num_runs, x, totals);
}

// totals [num_rows, 16]: the products of a whole tile.
template <QuantFormat format, class Rows>
void MultiplyTile(const RoundedMatMulArgs& args, const TileOfRows& tile, int t, int num_rows,
                  float* totals) {
  constexpr BlockSize kSize = SizeOfBlock(format);
  const bool is_whole = tile.count == kTileRows;
  switch (is_whole ? num_rows : kTileRows) {
    case 1:
      return MultiplyFew<format, Rows, 1>(args, tile, t, totals);
    case 2:
      return MultiplyFew<format, Rows, 2>(args, tile, t, totals);
    case 3:
      return MultiplyFew<format, Rows, 3>(args, tile, t, totals);
    default:
      break;
  }
  for (int i = 0; i < num_rows * kTileRows; i += 8) _mm256_store_ps(totals + i, Set(0.0f));
  BlockPanel<format> panel;
  FilledUp<format> filled_up;
  for (int col = 0; col < tile.cols; col += kPanelCols) {
    const int num_cols = Least(kPanelCols, tile.cols - col), num_runs = num_cols / kRun;
    const int num_blocks = num_cols / kSize.elements;
    const int64_t offset = int64_t{col / kSize.elements} * kSize.bytes;
    if (!is_whole) filled_up.Copy(tile, offset, num_blocks * kSize.bytes);
    for (int half = 0; half < 2; ++half) {
      if (is_whole) {
        const Rows rows(tile.data + 8 * half * tile.row_bytes, tile.row_bytes);
        panel.Fill(rows.Plus(offset), num_blocks, half);
      } else {
        constexpr int kBytes = FilledUp<format>::kBytes;
        panel.Fill(StoredRows(filled_up.rows + 8 * half * kBytes, kBytes), num_blocks, half);
      }
    }
    int r = 0;
    for (; r + kRowTile <= num_rows; r += kRowTile) {
      AddMany<format, kRowTile>(panel, col, num_runs, args, t + r, totals + r * kTileRows);
    }
    float* rest = totals + r * kTileRows;
    switch (num_rows - r) {
      case 3:
        AddMany<format, 3>(panel, col, num_runs, args, t + r, rest);
        break;
      case 2:
        AddMany<format, 2>(panel, col, num_runs, args, t + r, rest);
        break;
      case 1:
        AddMany<format, 1>(panel, col, num_runs, args, t + r, rest);
        break;
      default:
        break;
    }
  }
}

template <QuantFormat format, class Rows>
void BlockMatMul(const RoundedMatMulArgs& args) {
  constexpr BlockSize kSize = SizeOfBlock(format);
  const int64_t row_bytes = int64_t{args.weights.cols / kSize.elements} * kSize.bytes;
  alignas(32) float totals[kRowBlock * kTileRows];
  for (int first = 0; first < args.num_rows; first += kRowBlock) {
    const int num_rows = Least(kRowBlock, args.num_rows - first);
    for (int o = 0; o < args.num_outputs; o += kTileRows) {
      const TileOfRows tile = {static_cast<const char*>(args.weights.data) + o * row_bytes,
                               row_bytes, Least(kTileRows, args.num_outputs - o),
                               args.weights.cols};
      MultiplyTile<format, Rows>(args, tile, first, num_rows, totals);
      for (int t = 0; t < num_rows; ++t) {
        WriteTotals(totals + t * kTileRows, tile.count, args.accumulate,
                    args.out + (first + t) * args.out_stride + o);
      }
    }
  }
}

}  // namespace
}  // namespace hadal::avx2
