// Products of grouped weights with rows rounded to bytes. Few rows take the weights from memory as
// they are stored; many rows unpack a panel into the first cache and reuse it. Both add the same
// exact sums in the same order.
#include "kernels/avx2/grouped.h"

#include "kernels/avx2/parts.h"
#include "kernels/avx2/weights.h"

namespace hadal::avx2 {
namespace {

constexpr int kFewRows = 4;     // taken from the stored bytes
constexpr int kRowTile = 4;     // of many rows: eight sums in registers
constexpr int kRowBlock = 128;  // whose totals (8 KB) and x stay in the second cache
constexpr int kPanelCols = 512;

// Where the groups of one tile are.
struct TileGroups {
  const char* tile;
  GroupShape shape;
  int cols;
  int64_t code_bytes, block_bytes;  // of a full group

  TileGroups(const char* at, const GroupShape& group_shape, int num_cols)
      : tile(at),
        shape(group_shape),
        cols(num_cols),
        code_bytes(CodeBytes(shape, shape.group_size)),
        block_bytes(BlockBytes(shape, shape.group_size)) {}

  int size(int group) const { return Least(shape.group_size, cols - group * shape.group_size); }
  const char* codes(int group) const { return tile + group * block_bytes; }
  const char* scales(int group) const {
    const int num = size(group);
    return codes(group) + (num == shape.group_size ? code_bytes : CodeBytes(shape, num));
  }
};

struct XRows {
  const QuantizedRows* x;
  const int32_t* row_ids;

  GroupOfX At(int t, int group, int first_col) const {
    const int64_t row = row_ids != nullptr ? row_ids[t] : t;
    const int64_t begin = row * x->cols + first_col;
    return {x->codes + begin, x->words + begin, x->pair_sums + begin / 16,
            x->scales[row * x->num_groups + group]};
  }
};

// totals [kRows, 16] += the products of groups [first, end) with rows t, t + 1, ...
template <QuantFormat format, int kRows>
[[gnu::noinline]] void AddStored(const TileGroups& tile, const XRows& x, int t, float* totals) {
  const int num_groups = (tile.cols + tile.shape.group_size - 1) / tile.shape.group_size;
  for (int g = 0; g < num_groups; ++g) {
    const GroupScales scales = LoadScales(tile.scales(g), tile.shape.has_zero_points);
    GroupOfX rows[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) rows[r] = x.At(t + r, g, g * tile.shape.group_size);
    const GroupSums<kRows> sums =
        SumGroup<kRows>(typename StepSources<format>::Stored{tile.codes(g)}, tile.size(g), scales,
                        rows, static_cast<Step<format>*>(nullptr));
    AddToTotals<kRows>(sums, scales, rows, totals);
  }
}

// Some groups of a tile, unpacked.
template <QuantFormat format>
struct Panel {
  static constexpr int kStepBytes = StepSources<format>::kPanelBytes;
  alignas(32) char codes[kPanelCols / kStepCols * kStepBytes];
  GroupScales scales[kPanelCols / kSmallestGroup];
  int first_group = 0, num_groups = 0;

  // Groups [first, first + num).
  void Fill(const TileGroups& tile, int first, int num) {
    first_group = first;
    num_groups = num;
    char* to = codes;
    for (int g = 0; g < num; ++g) {
      scales[g] = LoadScales(tile.scales(first + g), tile.shape.has_zero_points);
      const typename StepSources<format>::Stored steps{tile.codes(first + g)};
      for (int step = 0; step < tile.size(first + g) / kStepCols; ++step, to += kStepBytes) {
        Unpack(steps.Load(step), to);
      }
    }
  }
};

template <QuantFormat format, int kRows>
[[gnu::noinline]] void AddPanel(const Panel<format>& panel, const TileGroups& tile, const XRows& x,
                                int t, float* totals) {
  const char* codes = panel.codes;
  for (int g = 0; g < panel.num_groups; ++g) {
    const int group = panel.first_group + g, size = tile.size(group);
    GroupOfX rows[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) rows[r] = x.At(t + r, group, group * tile.shape.group_size);
    const GroupSums<kRows> sums =
        SumGroup<kRows>(typename StepSources<format>::Panel{codes}, size, panel.scales[g], rows,
                        static_cast<Step<format>*>(nullptr));
    AddToTotals<kRows>(sums, panel.scales[g], rows, totals);
    codes += size / kStepCols * Panel<format>::kStepBytes;
  }
}

inline void WriteTotals(const float* totals, int num_outputs, bool accumulate, float* out) {
  for (int half = 0; half < 2; ++half) {
    const int count = Least(8, num_outputs - 8 * half);
    if (count <= 0) return;
    float* at = out + 8 * half;
    const Vec sum = _mm256_load_ps(totals + 8 * half);
    Store(at, accumulate ? Add(Load(at, count), sum) : sum, count);
  }
}

template <QuantFormat format>
void FewRows(const TileGroups& tile, const XRows& x, int t, int num_rows, float* totals) {
  switch (num_rows) {
    case 1:
      return AddStored<format, 1>(tile, x, t, totals);
    case 2:
      return AddStored<format, 2>(tile, x, t, totals);
    case 3:
      return AddStored<format, 3>(tile, x, t, totals);
    default:
      return AddStored<format, 4>(tile, x, t, totals);
  }
}

template <QuantFormat format>
void ManyRows(const TileGroups& tile, const XRows& x, int t, int num_rows, float* totals) {
  Panel<format> panel;
  const int num_groups = (tile.cols + tile.shape.group_size - 1) / tile.shape.group_size;
  const int groups_per_panel = kPanelCols / tile.shape.group_size;
  for (int first = 0; first < num_groups; first += groups_per_panel) {
    panel.Fill(tile, first, Least(groups_per_panel, num_groups - first));
    int r = 0;
    for (; r + kRowTile <= num_rows; r += kRowTile) {
      AddPanel<format, kRowTile>(panel, tile, x, t + r, totals + r * kTileRows);
    }
    for (; r < num_rows; ++r) {
      AddPanel<format, 1>(panel, tile, x, t + r, totals + r * kTileRows);
    }
  }
}

template <QuantFormat format>
void GroupedMatMul(const GroupedMatMulArgs& args) {
  const GroupShape shape = {format, args.weights.group_size, args.weights.has_zero_points};
  const int64_t tile_bytes = TileBytes(shape, args.weights.cols);
  const XRows x = {&args.x, args.row_ids};
  alignas(32) float totals[kRowBlock * kTileRows];
  for (int first = 0; first < args.num_rows; first += kRowBlock) {
    const int num_rows = Least(kRowBlock, args.num_rows - first);
    for (int o = 0; o < args.num_outputs; o += kTileRows) {
      const TileGroups tile(
          static_cast<const char*>(args.weights.data) + o / kTileRows * tile_bytes, shape,
          args.weights.cols);
      for (int i = 0; i < num_rows * kTileRows; i += 8) _mm256_store_ps(totals + i, Set(0.0f));
      if (num_rows <= kFewRows) {
        FewRows<format>(tile, x, first, num_rows, totals);
      } else {
        ManyRows<format>(tile, x, first, num_rows, totals);
      }
      for (int t = 0; t < num_rows; ++t) {
        WriteTotals(totals + t * kTileRows, Least(kTileRows, args.num_outputs - o), args.accumulate,
                    args.out + (first + t) * args.out_stride + o);
      }
    }
  }
}

// What SumGroup does in its inner loop, on registers alone: eight sums, each a byte product and an
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

template <QuantFormat format>
void AddFormat(KernelTable* table) {
  table->grouped_matmul[GroupedIdx(format)] = GroupedMatMul<format>;
}

}  // namespace

void AddGrouped(KernelTable* table) {
  AddFormat<QuantFormat::kInt8Group>(table);
  AddFormat<QuantFormat::kInt4Group>(table);
  table->integer_probe = IntegerProbe;
  table->integer_probe_ops = kProbeSums * 32 * 2;
}

}  // namespace hadal::avx2
