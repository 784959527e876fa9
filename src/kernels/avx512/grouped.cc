// Products of grouped weights with rows rounded to bytes. Few rows take the weights from memory as
// they are stored; many rows unpack a panel of four tiles into the first cache and reuse it. Both
// add the same exact sums in the same order.
#include "kernels/avx512/grouped.h"

#include "kernels/avx512/parts.h"

namespace hadal::avx512 {
namespace {

constexpr int kFewRows = 12;   // up to so many, a panel costs more than it saves
constexpr int kRowTile = 6;    // with four tiles 24 sums in registers
constexpr int kRowBlock = 60;  // whose totals (15 KB) stay in the first cache beside a panel
constexpr int kPanelCols = 256;
constexpr int kPanelParts = 8;  // in which the next one is fetched

// Where rows of x begin.
struct XRows {
  const std::byte* x;
  int64_t row_bytes;
  const int32_t* row_ids;
  int cols;
  int group_size;

  // Rows t, t + 1, ..., from a group on.
  template <int kRows>
  HADAL_INLINE RowCodes<kRows> At(int t, int group) const {
    RowCodes<kRows> rows;
    const int col = group * group_size;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const int64_t row = row_ids != nullptr ? row_ids[t + r] : t + r;
      rows.codes[r] = reinterpret_cast<const char*>(x) + row * row_bytes + col;
    }
    rows.tail = cols - col + int64_t{group} * kTailBytes;
    return rows;
  }
};

// kTiles tiles of a weight.
template <QuantFormat format, bool kZeros, int kTiles>
struct Weight {
  const char* data;
  int64_t tile_bytes;
  int cols;
  int group_size;

  GroupShape Shape() const { return {format, group_size, kZeros}; }
};

// totals [kRows, kTiles, 16] += the products of some tiles with rows t, t + 1, ..., weights taken
// as stored.
template <int kRows, int kTiles, QuantFormat format, bool kZeros, int kAllTiles>
[[gnu::noinline]] void AddStored(const Weight<format, kZeros, kAllTiles>& w, int tile,
                                 const XRows& rows, int t, float* totals) {
  RowCodes<kRows> x = rows.At<kRows>(t, 0);
  StoredTiles<format, kZeros> tiles = {w.data + tile * w.tile_bytes, w.tile_bytes, 0};
  for (int col = 0; col < w.cols; col += w.group_size) {
    const int size = Least(w.group_size, w.cols - col);
    tiles.code_bytes = static_cast<int>(CodeBytes(w.Shape(), size));
    AddGroup<kRows, kTiles>(tiles, size, x, totals);
    tiles.block += BlockBytes(w.Shape(), size);
    x.Advance(size);
  }
}

// Some groups of kTiles tiles, unpacked.
template <bool zeros, int kTiles, int moved>
struct Panel {
  static constexpr bool kZeros = zeros;
  static constexpr int kMoved = moved;
  static constexpr int kMaxGroups = kPanelCols / kSmallestGroup;
  alignas(64) char codes[kPanelCols / kStepCols][kTiles][64];
  alignas(64) float scales[kMaxGroups][kTiles][kTileRows];
  alignas(64) int32_t zero_points[zeros ? kMaxGroups : 1][kTiles][kTileRows];
};

// One of them, for AddGroup.
template <class Panel>
struct PanelGroup {
  static constexpr bool kZeros = Panel::kZeros;
  static constexpr int kMoved = Panel::kMoved;
  const Panel& panel;
  int64_t first_col;
  int group;

  HADAL_INLINE __m512i Step(int tile, int64_t col, int step) const {
    return _mm512_load_si512(panel.codes[(first_col + col) / kStepCols + step][tile]);
  }
  HADAL_INLINE __m512 Scales(int tile) const { return _mm512_load_ps(panel.scales[group][tile]); }
  HADAL_INLINE __m512i ZeroPoints(int tile) const {
    return _mm512_load_si512(panel.zero_points[group][tile]);
  }
  HADAL_INLINE void PrefetchAhead(int, int64_t) const {}
};

// The columns [col, col + num_cols) of a weight; `col` begins a group.
template <QuantFormat format, bool kZeros, int kTiles, class Panel>
void Fill(const Weight<format, kZeros, kTiles>& w, int col, int num_cols, Panel* panel) {
  const GroupShape shape = w.Shape();
  for (int tile = 0; tile < kTiles; ++tile) {
    const char* block =
        w.data + tile * w.tile_bytes + col / w.group_size * BlockBytes(shape, w.group_size);
    int to = 0;
    for (int begin = 0, g = 0; begin < num_cols; begin += w.group_size, ++g) {
      const int size = Least(w.group_size, num_cols - begin);
#pragma GCC unroll 8
      for (int step = 0; step < size / kStepCols; ++step, ++to) {
        _mm512_store_si512(panel->codes[to][tile], LoadStep<format>(block, step));
      }
      const char* scales = block + CodeBytes(shape, size);
      _mm512_store_ps(panel->scales[g][tile], LoadScales(scales));
      if (kZeros) {
        _mm512_store_si512(panel->zero_points[g][tile], LoadZeroPoints(scales + 2 * kTileRows));
      }
      block += BlockBytes(shape, size);
    }
  }
}

// totals [kRows, kTiles, 16] += the products of a panel with rows t, t + 1, ..., from a group on.
template <int kRows, int kTiles, class Panel>
[[gnu::noinline]] void AddPanel(const Panel& panel, int num_cols, const XRows& rows, int t,
                                int first_group, float* totals) {
  RowCodes<kRows> x = rows.At<kRows>(t, first_group);
  for (int col = 0, g = 0; col < num_cols; col += rows.group_size, ++g) {
    const int size = Least(rows.group_size, num_cols - col);
    AddGroup<kRows, kTiles>(PanelGroup<Panel>{panel, col, g}, size, x, totals);
    x.Advance(size);
  }
}

template <QuantFormat format, bool kZeros, int kTiles>
void FewRows(const Weight<format, kZeros, kTiles>& w, const XRows& x, int t, int num_rows,
             float* totals) {
  ForRowTiles<kRowTile>(num_rows, [&](auto rows, int r) {
    AddStored<rows.kCount, kTiles>(w, 0, x, t + r, totals + r * kTiles * kTileRows);
  });
}

template <QuantFormat format, bool kZeros, int kTiles>
void ManyRows(const Weight<format, kZeros, kTiles>& w, const XRows& x, int t, int num_rows,
              float* totals) {
  const int64_t panel_bytes = kPanelCols / w.group_size * BlockBytes(w.Shape(), w.group_size);
  Panel<kZeros, kTiles, kMovedBy<format>> panel;
  for (int col = 0; col < w.cols; col += kPanelCols) {
    const int num_cols = Least(kPanelCols, w.cols - col);
    Fill(w, col, num_cols, &panel);
    const char* next = w.data + (col / kPanelCols + 1) * panel_bytes;
    ForRowTiles<kRowTile>(num_rows, [&](auto rows, int r) {
      // The next panel, a part beside each of the first tiles of rows.
      if (r < kPanelParts * kRowTile) {
        const int64_t part = panel_bytes / kPanelParts;
        for (int tile = 0; tile < kTiles; ++tile) {
          const char* from = next + tile * w.tile_bytes + r / kRowTile * part;
          for (int64_t line = 0; line < part; line += 64) _mm_prefetch(from + line, _MM_HINT_T0);
        }
      }
      AddPanel<rows.kCount, kTiles>(panel, num_cols, x, t + r, col / w.group_size,
                                    totals + r * kTiles * kTileRows);
    });
  }
}

// The first `num_outputs` of totals [16] as a product's results.
HADAL_INLINE void WriteTotals(const float* totals, int num_outputs, bool accumulate, float* out) {
  if (num_outputs <= 0) return;
  const auto lanes = static_cast<__mmask16>((1u << Least(num_outputs, kTileRows)) - 1);
  __m512 sum = _mm512_load_ps(totals);
  if (accumulate) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, out), sum);
  _mm512_mask_storeu_ps(out, lanes, sum);
}

// Outputs [o, o + kTiles * 16) of a product, as far as there are any.
template <QuantFormat format, bool kZeros, int kTiles>
void ProductOfTiles(const RoundedMatMulArgs& args, int o) {
  const GroupShape shape = {format, args.weights.group_size, kZeros};
  const int64_t tile_bytes = TileBytes(shape, args.weights.cols);
  const Weight<format, kZeros, kTiles> w = {
      static_cast<const char*>(args.weights.data) + o / kTileRows * tile_bytes, tile_bytes,
      args.weights.cols, args.weights.group_size};
  const XRows x = {args.x, args.row_bytes, args.row_ids, w.cols, w.group_size};
  alignas(64) float totals[kRowBlock * kTiles * kTileRows];
  for (int first = 0; first < args.num_rows; first += kRowBlock) {
    const int num_rows = Least(kRowBlock, args.num_rows - first);
    for (int i = 0; i < num_rows * kTiles * kTileRows; i += 16) {
      _mm512_store_ps(totals + i, _mm512_setzero_ps());
    }
    if (num_rows <= kFewRows) {
      FewRows(w, x, first, num_rows, totals);
    } else {
      ManyRows(w, x, first, num_rows, totals);
    }
    for (int t = 0; t < num_rows; ++t) {
      for (int tile = 0; tile < kTiles; ++tile) {
        const int begin = o + tile * kTileRows;
        WriteTotals(totals + (t * kTiles + tile) * kTileRows, args.num_outputs - begin,
                    args.accumulate, args.out + (first + t) * args.out_stride + begin);
      }
    }
  }
}

template <QuantFormat format, bool kZeros>
void Product(const RoundedMatMulArgs& args) {
  const int num_tiles = (args.num_outputs + kTileRows - 1) / kTileRows;
  int tile = 0;
  for (; tile + 4 <= num_tiles; tile += 4) {
    ProductOfTiles<format, kZeros, 4>(args, tile * kTileRows);
  }
  if (tile + 2 <= num_tiles) {
    ProductOfTiles<format, kZeros, 2>(args, tile * kTileRows);
    tile += 2;
  }
  if (tile < num_tiles) ProductOfTiles<format, kZeros, 1>(args, tile * kTileRows);
}

void Int8MatMul(const RoundedMatMulArgs& args) { Product<QuantFormat::kInt8Group, false>(args); }

void Int4MatMul(const RoundedMatMulArgs& args) {
  if (args.weights.has_zero_points) {
    Product<QuantFormat::kInt4Group, true>(args);
  } else {
    Product<QuantFormat::kInt4Group, false>(args);
  }
}

// What AddGroup does in its inner loop, on registers alone.
constexpr int kProbeSums = 16;

int32_t IntegerProbe(int64_t rounds) {
  __m512i sums[kProbeSums];
  for (int k = 0; k < kProbeSums; ++k) sums[k] = _mm512_set1_epi32(k);
  const __m512i x = _mm512_set1_epi8(3);
  for (int64_t i = 0; i < rounds; ++i) {
    const __m512i w = _mm512_set1_epi8(static_cast<char>(i & 15));
#pragma GCC unroll 16
    for (int k = 0; k < kProbeSums; ++k) AddByteProducts(w, x, &sums[k]);
  }
  __m512i total = sums[0];
  for (int k = 1; k < kProbeSums; ++k) total = _mm512_xor_si512(total, sums[k]);
  return _mm512_reduce_add_epi32(total);
}

}  // namespace

void AddGrouped(KernelTable* table) {
  table->rounded_matmul[RoundedIdx(QuantFormat::kInt8Group)] = Int8MatMul;
  table->rounded_matmul[RoundedIdx(QuantFormat::kInt4Group)] = Int4MatMul;
  table->integer_probe = IntegerProbe;
  table->integer_probe_ops = kProbeSums * 64 * 2;
}

}  // namespace hadal::avx512
