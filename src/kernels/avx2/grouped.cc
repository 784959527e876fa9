// Products of grouped weights with rows rounded to bytes. Few rows take the weights from memory as
// they are stored; many rows unpack a panel into the first cache and reuse it. Both add the same
// exact sums in the same order.
#include "kernels/avx2/grouped.h"

#include "kernels/avx2/parts.h"
#include "kernels/avx2/tile_totals.h"
#include "kernels/avx2/weights.h"

namespace hadal::avx2 {
namespace {

constexpr int kFewRows = 12;   // up to so many, a panel costs more than it saves
constexpr int kRowTile = 4;    // of many rows: eight sums in registers
constexpr int kRowBlock = 64;  // whose totals (4 KB) and x stay in the near caches
constexpr int kPanelCols = 512;
constexpr int kPanelParts = 4;  // in which it is fetched

// Sixteen outputs of a weight.
struct Tile {
  const char* data;
  int cols;
};

// Where rows of x begin.
struct XRows {
  const std::byte* x;
  int64_t row_bytes;
  const int32_t* row_ids;

  const char* At(int t) const {
    const int64_t row = row_ids != nullptr ? row_ids[t] : t;
    return reinterpret_cast<const char*>(x) + row * row_bytes;
  }
};

// totals [kRows, 16] += the products of a tile with rows t, t + 1, ..., weights taken as stored.
// The size of a full group is a constant, so that all addresses inside a group are.
template <QuantFormat format, bool kZeros, int kGroup, int kRows>
[[gnu::noinline]] void AddStored(const Tile& tile, const XRows& rows, int t, float* totals) {
  constexpr GroupShape kShape = {format, kGroup, kZeros};
  const char* x[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) x[r] = rows.At(t + r);
  const char* block = tile.data;
  const int num_full = tile.cols / kGroup, rest = tile.cols % kGroup;
  for (int g = 0; g < num_full; ++g, block += BlockBytes(kShape, kGroup)) {
    PrefetchAhead<BlockBytes(kShape, kGroup)>(block);
    const GroupScales scales = LoadScales<kZeros>(block + CodeBytes(kShape, kGroup));
    AddGroup<format, kZeros, kRows>(typename StepSources<format>::Stored{block}, kGroup, scales, x,
                                    totals);
  }
  if (rest == 0) return;
  const GroupScales scales = LoadScales<kZeros>(block + CodeBytes(kShape, rest));
  AddGroup<format, kZeros, kRows>(typename StepSources<format>::Stored{block}, rest, scales, x,
                                  totals);
}

// Some groups of a tile, unpacked.
template <QuantFormat format>
struct Panel {
  static constexpr int kStepBytes = StepSources<format>::kPanelBytes;
  alignas(32) char codes[kPanelCols / kStepCols * kStepBytes];
  GroupScales scales[kPanelCols / kSmallestGroup];
  int num_full = 0, rest = 0;  // full groups, and the columns of a shorter one after them

  // The `num_cols` columns from a block on.
  template <bool kZeros>
  void Fill(const GroupShape& shape, const char* block, int num_cols) {
    num_full = num_cols / shape.group_size;
    rest = num_cols % shape.group_size;
    char* to = codes;
    for (int g = 0; g * shape.group_size < num_cols; ++g) {
      const int size = Least(shape.group_size, num_cols - g * shape.group_size);
      scales[g] = LoadScales<kZeros>(block + CodeBytes(shape, size));
      const typename StepSources<format>::Stored steps{block};
      for (int step = 0; step < size / kStepCols; ++step, to += kStepBytes) {
        Unpack(steps.Load(step), to);
      }
      block += BlockBytes(shape, size);
    }
  }
};

// totals [kRows, 16] += the products of a panel with rows t, t + 1, ..., from byte `x_offset` on.
template <QuantFormat format, bool kZeros, int kGroup, int kRows>
[[gnu::noinline]] void AddPanel(const Panel<format>& panel, const XRows& rows, int t,
                                int64_t x_offset, float* totals) {
  using Steps = typename StepSources<format>::Panel;
  const char* x[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) x[r] = rows.At(t + r) + x_offset;
  const char* codes = panel.codes;
  const GroupScales* scales = panel.scales;
  for (int g = 0; g < panel.num_full; ++g, ++scales) {
    AddGroup<format, kZeros, kRows>(Steps{codes}, kGroup, *scales, x, totals);
    codes += kGroup / kStepCols * Panel<format>::kStepBytes;
  }
  if (panel.rest > 0) {
    AddGroup<format, kZeros, kRows>(Steps{codes}, panel.rest, *scales, x, totals);
  }
}

// The weights as stored, for four rows at a time.
template <QuantFormat format, bool kZeros, int kGroup>
void FewRows(const Tile& tile, const XRows& x, int t, int num_rows, float* totals) {
  for (; num_rows >= 4; num_rows -= 4, t += 4, totals += 4 * kTileRows) {
    AddStored<format, kZeros, kGroup, 4>(tile, x, t, totals);
  }
  switch (num_rows) {
    case 3:
      return AddStored<format, kZeros, kGroup, 3>(tile, x, t, totals);
    case 2:
      return AddStored<format, kZeros, kGroup, 2>(tile, x, t, totals);
    case 1:
      return AddStored<format, kZeros, kGroup, 1>(tile, x, t, totals);
    default:
      return;
  }
}

template <QuantFormat format, bool kZeros, int kGroup>
void ManyRows(const Tile& tile, const XRows& x, int t, int num_rows, float* totals) {
  constexpr GroupShape kShape = {format, kGroup, kZeros};
  constexpr int kGroupsPerPanel = kPanelCols / kGroup;
  constexpr int kPanelBytes = kGroupsPerPanel * static_cast<int>(BlockBytes(kShape, kGroup));
  constexpr int kPartBytes = kPanelBytes / kPanelParts;
  Panel<format> panel;
  for (int col = 0; col < tile.cols; col += kPanelCols) {
    const int first_group = col / kGroup;
    const char* const blocks = tile.data + first_group * BlockBytes(kShape, kGroup);
    panel.template Fill<kZeros>(kShape, blocks, Least(kGroupsPerPanel * kGroup, tile.cols - col));
    const int64_t x_offset = int64_t{first_group} * RoundedBlockBytes(format, kGroup);
    const char* const next = blocks + kPanelBytes;
    int r = 0;
    for (; r + kRowTile <= num_rows; r += kRowTile) {
      // The next panel, a part beside each of the first tiles of rows.
      if (r < kPanelParts * kRowTile) Prefetch<kPartBytes>(next + r / kRowTile * kPartBytes);
      AddPanel<format, kZeros, kGroup, kRowTile>(panel, x, t + r, x_offset, totals + r * kTileRows);
    }
  }
  const int done = num_rows / kRowTile * kRowTile;
  FewRows<format, kZeros, kGroup>(tile, x, t + done, num_rows - done, totals + done * kTileRows);
}

template <QuantFormat format, bool kZeros, int kGroup>
void Product(const RoundedMatMulArgs& args) {
  constexpr GroupShape kShape = {format, kGroup, kZeros};
  const int64_t tile_bytes = TileBytes(kShape, args.weights.cols);
  const XRows x = {args.x, args.row_bytes, args.row_ids};
  alignas(32) float totals[kRowBlock * kTileRows];
  for (int first = 0; first < args.num_rows; first += kRowBlock) {
    const int num_rows = Least(kRowBlock, args.num_rows - first);
    for (int o = 0; o < args.num_outputs; o += kTileRows) {
      const Tile tile = {static_cast<const char*>(args.weights.data) + o / kTileRows * tile_bytes,
                         args.weights.cols};
      for (int i = 0; i < num_rows * kTileRows; i += 8) _mm256_store_ps(totals + i, Set(0.0f));
      if (num_rows <= kFewRows) {
        FewRows<format, kZeros, kGroup>(tile, x, first, num_rows, totals);
      } else {
        ManyRows<format, kZeros, kGroup>(tile, x, first, num_rows, totals);
      }
      for (int t = 0; t < num_rows; ++t) {
        WriteTotals(totals + t * kTileRows, Least(kTileRows, args.num_outputs - o), args.accumulate,
                    args.out + (first + t) * args.out_stride + o);
      }
    }
  }
}

template <QuantFormat format, bool kZeros>
void ProductOfGroups(const RoundedMatMulArgs& args) {
  switch (args.weights.group_size) {
    case 32:
      return Product<format, kZeros, 32>(args);
    case 64:
      return Product<format, kZeros, 64>(args);
    default:
      return Product<format, kZeros, 128>(args);
  }
}

void Int8MatMul(const RoundedMatMulArgs& args) {
  ProductOfGroups<QuantFormat::kInt8Group, false>(args);
}

void Int4MatMul(const RoundedMatMulArgs& args) {
  if (args.weights.has_zero_points) {
    ProductOfGroups<QuantFormat::kInt4Group, true>(args);
  } else {
    ProductOfGroups<QuantFormat::kInt4Group, false>(args);
  }
}

// What SumWords does in its inner loop, on registers alone: eight sums, each a byte product and an
// addition of words.
constexpr int kProbeSums = 8;

int32_t IntegerProbe(int64_t rounds) {
  __m256i sums[kProbeSums], x[kProbeSums];
  for (int k = 0; k < kProbeSums; ++k) {
    sums[k] = _mm256_set1_epi16(static_cast<short>(k));
    x[k] = _mm256_set1_epi8(static_cast<char>(k + 1));
  }
  for (int64_t i = 0; i < rounds; ++i) {
    const __m256i w = _mm256_set1_epi8(static_cast<char>(i & 15));
#pragma GCC unroll 8
    for (int k = 0; k < kProbeSums; ++k) {
      sums[k] = _mm256_add_epi16(sums[k], _mm256_maddubs_epi16(w, x[k]));
    }
  }
  __m256i total = sums[0];
  for (int k = 1; k < kProbeSums; ++k) total = _mm256_xor_si256(total, sums[k]);
  return _mm256_extract_epi32(total, 0);
}

}  // namespace

void AddGrouped(KernelTable* table) {
  table->rounded_matmul[RoundedIdx(QuantFormat::kInt8Group)] = Int8MatMul;
  table->rounded_matmul[RoundedIdx(QuantFormat::kInt4Group)] = Int4MatMul;
  table->integer_probe = IntegerProbe;
  table->integer_probe_ops = kProbeSums * 32 * 2;
}

}  // namespace hadal::avx2
