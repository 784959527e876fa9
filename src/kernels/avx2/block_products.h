// Products of blocked weights with rows rounded to bytes. Lanes are outputs. Few rows take the
// weights from registers, many from a panel in the first cache; both add the same exact sums in the
// same order.
#pragma once

#include "kernels/avx2/tile_totals.h"
#include "kernels/avx2/turned_block.h"

namespace hadal::avx2 {
namespace {

constexpr int kRowTile = 4;    // eight sums in registers
constexpr int kRowBlock = 64;  // whose totals (4 KB) and a panel's x stay in the near caches
constexpr int kPanelCols = 256;
constexpr int kLargestInput = 127;

// The largest magnitude of a code less its offset.
constexpr int LargestCode(QuantFormat format) {
  switch (format) {
    case QuantFormat::kQ2_K:
      return 3;
    case QuantFormat::kQ3_K:
      return 4;
    case QuantFormat::kQ4_0:
      return 8;
    case QuantFormat::kQ4_1:
    case QuantFormat::kQ4_K:
      return 15;
    case QuantFormat::kQ5_0:
      return 16;
    case QuantFormat::kQ5_1:
    case QuantFormat::kQ5_K:
      return 31;
    case QuantFormat::kQ6_K:
      return 32;
    default:
      return 128;
  }
}

// Steps whose products a word of 16 bits adds up exactly: each brings two of them, and what
// overflows on the way wraps back.
template <QuantFormat format>
constexpr int kStepsPerWordSum = Least(ScaleElements(format) / kStepCols,
                                       32767 / (2 * kLargestInput * LargestCode(format)));

// Exact sums of a group: lanes are eight outputs.
template <int kRows, int kHalves>
struct BlockSums {
  __m256i lanes[kRows][kHalves];
};

// Codes with a sign, whose two products fill a word. `codes(step, half)` are four columns of eight
// outputs.
template <QuantFormat format, int kRows, int kHalves, class Codes>
HADAL_INLINE BlockSums<kRows, kHalves> SumSigned(const Codes& codes,
                                                 const char* const (&x)[kRows]) {
  constexpr int kSteps = ScaleElements(format) / kStepCols;
  const __m256i ones = _mm256_set1_epi16(1);
  BlockSums<kRows, kHalves> sums;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int half = 0; half < kHalves; ++half) sums.lanes[r][half] = _mm256_setzero_si256();
  }
#pragma GCC unroll 8
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 2
    for (int half = 0; half < kHalves; ++half) {
      const __m256i w = codes(step, half), magnitude = _mm256_abs_epi8(w);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256i signed_x = _mm256_sign_epi8(BroadcastWord(x[r] + kStepCols * step), w);
        const __m256i words = _mm256_maddubs_epi16(magnitude, signed_x);
        sums.lanes[r][half] = AddIntsNow(sums.lanes[r][half], _mm256_madd_epi16(words, ones));
      }
    }
  }
  return sums;
}

// Codes without sign. `sums_at` are the words that an offset takes.
template <QuantFormat format, int kRows, int kHalves, class Codes>
HADAL_INLINE BlockSums<kRows, kHalves> SumUnsigned(const Codes& codes,
                                                   const char* const (&x)[kRows],
                                                   const char* const (&sums_at)[kRows]) {
  constexpr int kSteps = ScaleElements(format) / kStepCols;
  constexpr int kWordSteps = kStepsPerWordSum<format>;
  static_assert(CodeOffset(format) == 0 || kWordSteps == kSteps);
  const __m256i ones = _mm256_set1_epi16(1);
  BlockSums<kRows, kHalves> sums;
#pragma GCC unroll 2
  for (int first = 0; first < kSteps; first += kWordSteps) {
    BlockSums<kRows, kHalves> words;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      __m256i start = _mm256_setzero_si256();
      if (CodeOffset(format) != 0) {
        start =
            _mm256_mullo_epi16(BroadcastWord(sums_at[r]), _mm256_set1_epi16(-CodeOffset(format)));
      }
#pragma GCC unroll 2
      for (int half = 0; half < kHalves; ++half) words.lanes[r][half] = start;
    }
#pragma GCC unroll 8
    for (int step = first; step < first + kWordSteps; ++step) {
      __m256i w[kHalves];
#pragma GCC unroll 2
      for (int half = 0; half < kHalves; ++half) w[half] = codes(step, half);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256i xv = BroadcastWord(x[r] + kStepCols * step);
#pragma GCC unroll 2
        for (int half = 0; half < kHalves; ++half) {
          const __m256i term = _mm256_maddubs_epi16(w[half], xv);
          words.lanes[r][half] = AddWordsNow(words.lanes[r][half], term);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int half = 0; half < kHalves; ++half) {
        const __m256i sum = _mm256_madd_epi16(words.lanes[r][half], ones);
        sums.lanes[r][half] = first == 0 ? sum : _mm256_add_epi32(sums.lanes[r][half], sum);
      }
    }
  }
  return sums;
}

// The sums of group `part` of a run; `x` are the runs of the rows.
template <QuantFormat format, int kRows, int kHalves, int part, class Codes>
HADAL_INLINE BlockSums<kRows, kHalves> SumGroup(const Codes& codes, const char* const (&x)[kRows]) {
  const char *cols[kRows], *sums_at[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    cols[r] = x[r] + part * ScaleElements(format);
    sums_at[r] = x[r] + kRunSumsOffset + 4 * part;
  }
  if constexpr (HasSignedCodes(format)) {
    return SumSigned<format, kRows, kHalves>(codes, cols);
  } else {
    return SumUnsigned<format, kRows, kHalves>(codes, cols, sums_at);
  }
}

// total + a group's sums with their scale, and what its minimum brings. `x` is the run of the row.
template <QuantFormat format, int part>
HADAL_INLINE Vec AddToTotal(__m256i sums, Vec scale, Vec min, const char* x, Vec total) {
  const Vec x_scale = _mm256_castsi256_ps(BroadcastWord(x + kRunScaleOffset));
  total = MulAdd(_mm256_cvtepi32_ps(sums), Mul(scale, x_scale), total);
  if constexpr (UseOfMin(format) != MinUse::kNone) {
    const Vec x_sum = _mm256_castsi256_ps(BroadcastWord(x + kRunSumsOffset + 4 * part));
    total = UseOfMin(format) == MinUse::kAdd ? MulAdd(min, x_sum, total)
                                             : _mm256_fnmadd_ps(min, x_sum, total);
  }
  return total;
}

template <QuantFormat format>
constexpr int kParts = kRun / ScaleElements(format);

// Few rows: codes go from the turned block into the products, without a panel.
template <QuantFormat format, int kRows>
class FewRows {
 public:
  // totals [kRows, 16], of which the first eight are written: the products of eight outputs.
  [[gnu::noinline]] static void Multiply(EightRows rows, int num_blocks, const char* (&x)[kRows],
                                         float* totals) {
    constexpr int kBytes = SizeOfBlock(format).bytes;
    Vec total[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) total[r] = Set(0.0f);
    for (int b = 0; b < num_blocks; ++b) {
      PrefetchNext(rows);
      TurnedBlock<format> block(rows);
      AddRuns<0>(&block, x, total);
      rows = rows.Plus(kBytes);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) _mm256_store_ps(totals + r * kTileRows, total[r]);
  }

 private:
  // The processor's own prefetchers lose eight streams that end soon; a prefetch past the end is
  // harmless.
  HADAL_INLINE static void PrefetchNext(const EightRows& rows) {
    constexpr int kBytes = SizeOfBlock(format).bytes;
#pragma GCC unroll 8
    for (int o = 0; o < 8; ++o) {
#pragma GCC unroll 4
      for (int line = 0; line < kBytes; line += 64) {
        _mm_prefetch(rows.At(o) + 8 * rows.stride + line, _MM_HINT_T1);
      }
    }
  }

  template <int run>
  HADAL_INLINE static void AddRuns(TurnedBlock<format>* block, const char* (&x)[kRows],
                                   Vec (&total)[kRows]) {
    if constexpr (run < TurnedBlock<format>::kRuns) {
      block->template Start<run>();
      AddParts<run, 0>(*block, x, total);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) x[r] += kRoundedRunBytes;
      AddRuns<run + 1>(block, x, total);
    }
  }
  template <int run, int part>
  HADAL_INLINE static void AddParts(const TurnedBlock<format>& block, const char* const (&x)[kRows],
                                    Vec (&total)[kRows]) {
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
  [[gnu::noinline]] void Fill(EightRows rows, int num_blocks, int half) {
    for (int b = 0; b < num_blocks; ++b) {
      TurnedBlock<format> block(rows);
      const int run = b * TurnedBlock<format>::kRuns;
      FillRuns<0>(&block, run, half);
      FillScales<0>(block, run * kParts<format>, half);
      rows = rows.Plus(SizeOfBlock(format).bytes);
    }
  }

 private:
  template <int run>
  HADAL_INLINE void FillRuns(TurnedBlock<format>* block, int first_run, int half) {
    if constexpr (run < TurnedBlock<format>::kRuns) {
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
  template <int group>
  HADAL_INLINE void FillScales(const TurnedBlock<format>& block, int first_group, int half) {
    if constexpr (group < TurnedBlock<format>::kGroups) {
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

template <QuantFormat format, int kRows>
void MultiplyFew(const RoundedMatMulArgs& args, const TileOfRows& tile, int t, float* totals) {
  for (int half = 0; half < 2; ++half) {
    const char* x[kRows];
    FindRows(args, t, 0, x);
    FewRows<format, kRows>::Multiply({tile.data + 8 * half * tile.row_bytes, tile.row_bytes},
                                     tile.cols / SizeOfBlock(format).elements, x,
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
template <QuantFormat format>
void MultiplyTile(const RoundedMatMulArgs& args, const TileOfRows& tile, int t, int num_rows,
                  float* totals) {
  constexpr BlockSize kSize = SizeOfBlock(format);
  const bool is_whole = tile.count == kTileRows;
  switch (is_whole ? num_rows : kTileRows) {
    case 1:
      return MultiplyFew<format, 1>(args, tile, t, totals);
    case 2:
      return MultiplyFew<format, 2>(args, tile, t, totals);
    case 3:
      return MultiplyFew<format, 3>(args, tile, t, totals);
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
    EightRows rows = {tile.data + offset, tile.row_bytes};
    if (!is_whole) {
      filled_up.Copy(tile, offset, num_blocks * kSize.bytes);
      rows = {filled_up.rows, FilledUp<format>::kBytes};
    }
    for (int half = 0; half < 2; ++half) {
      panel.Fill(rows.Plus(8 * half * rows.stride), num_blocks, half);
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

template <QuantFormat format>
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
      MultiplyTile<format>(args, tile, first, num_rows, totals);
      for (int t = 0; t < num_rows; ++t) {
        WriteTotals(totals + t * kTileRows, tile.count, args.accumulate,
                    args.out + (first + t) * args.out_stride + o);
      }
    }
  }
}

template <QuantFormat format>
void AddBlockProduct(KernelTable* table) {
  table->rounded_matmul[RoundedIdx(format)] = BlockMatMul<format>;
}

}  // namespace
}  // namespace hadal::avx2
