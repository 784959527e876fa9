// Products of grouped weights with rows rounded to bytes. Two tiles of a weight meet six rows at a
// time, a span of columns after another, so that further rows find the span in the first cache.
// Codes are unpacked anew for every six rows: that takes what byte products leave idle. Up to three
// rows are bound by reading, and four streams are read faster than two.
#include "kernels/avx512/grouped.h"

#include "kernels/avx512/parts.h"
#include "kernels/avx512/tile_totals.h"

namespace hadal::avx512 {
namespace {

constexpr int kFewRows = 3;

// Rows that meet so many tiles at once, at most.
constexpr int RowsAtOnce(int num_tiles) { return num_tiles == 4 ? kFewRows : kManyRows; }

// Rows t, t + 1, ..., from a group on.
template <int kRows>
HADAL_INLINE RowCodes<kRows> CodesOf(const RoundedMatMulArgs& args, int t, int group) {
  RowCodes<kRows> rows;
  const int col = group * args.weights.group_size;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) rows.codes[r] = RowOf(args, t + r) + col;
  rows.tail = args.weights.cols - col + int64_t{group} * kTailBytes;
  return rows;
}

// kTiles tiles of a weight.
template <QuantFormat format, bool kZeros, int kTiles>
struct Weight {
  const char* data;
  int64_t tile_bytes;
  int cols;
  int group_size;

  GroupShape Shape() const { return {format, group_size, kZeros}; }
};

// Columns [begin, end) of a weight; both are ends of groups.
struct Columns {
  int begin, end;
};

// totals [kRows, kTiles, 16] += the products of some columns with rows t, t + 1, ...
template <int kRows, QuantFormat format, bool kZeros, int kTiles>
[[gnu::noinline]] void AddColumns(const Weight<format, kZeros, kTiles>& w, const Columns& columns,
                                  const RoundedMatMulArgs& args, int t, float* totals) {
  const int group = columns.begin / w.group_size;
  RowCodes<kRows> x = CodesOf<kRows>(args, t, group);
  const int64_t full_bytes = BlockBytes(w.Shape(), w.group_size);
  StoredTiles<format, kZeros> tiles = {w.data + group * full_bytes, w.tile_bytes, 0, 0};
  // Behind the end of a tile comes what the next call takes: the tiles behind these.
  const char* const near_end = w.data + w.tile_bytes - kFetchAhead;
  __m512 sums[kRows][kTiles];
  LoadTotals(totals, sums);
  for (int col = columns.begin; col < columns.end; col += w.group_size) {
    const int size = Least(w.group_size, columns.end - col);
    tiles.code_bytes = static_cast<int>(CodeBytes(w.Shape(), size));
    tiles.ahead = kFetchAhead + (tiles.block < near_end ? 0 : (kTiles - 1) * w.tile_bytes);
    AddGroup<kRows, kTiles>(tiles, size, x, sums);
    tiles.block += full_bytes;
    x.Advance(size);
  }
  StoreTotals(sums, totals);
}

template <QuantFormat format, bool kZeros, int kTiles>
void AddRows(const Weight<format, kZeros, kTiles>& w, const RoundedMatMulArgs& args, int t,
             int num_rows, float* totals) {
  for (int col = 0; col < w.cols; col += kSpanCols) {
    const Columns columns = {col, Least(w.cols, col + kSpanCols)};
    ForRowTiles<RowsAtOnce(kTiles)>(num_rows, [&](auto rows, int r) {
      AddColumns<rows.kCount>(w, columns, args, t + r, totals + r * kTiles * kTileRows);
    });
  }
}

// Outputs [o, o + kTiles * 16) of a product, as far as there are any.
template <QuantFormat format, bool kZeros, int kTiles>
void ProductOfTiles(const RoundedMatMulArgs& args, int o) {
  const GroupShape shape = {format, args.weights.group_size, kZeros};
  const int64_t tile_bytes = TileBytes(shape, args.weights.cols);
  const Weight<format, kZeros, kTiles> w = {
      static_cast<const char*>(args.weights.data) + o / kTileRows * tile_bytes, tile_bytes,
      args.weights.cols, args.weights.group_size};
  alignas(64) float totals[kRowBlock * kTiles * kTileRows];
  for (int first = 0; first < args.num_rows; first += kRowBlock) {
    const int num_rows = Least(kRowBlock, args.num_rows - first);
    ClearTotals<kTiles>(num_rows, totals);
    AddRows(w, args, first, num_rows, totals);
    WriteTotals<kTiles>(args, first, num_rows, o, totals);
  }
}

template <QuantFormat format, bool kZeros>
void Product(const RoundedMatMulArgs& args) {
  const int num_tiles = (args.num_outputs + kTileRows - 1) / kTileRows;
  int tile = 0;
  for (; args.num_rows <= kFewRows && tile + 4 <= num_tiles; tile += 4) {
    ProductOfTiles<format, kZeros, 4>(args, tile * kTileRows);
  }
  for (; tile + 2 <= num_tiles; tile += 2) {
    ProductOfTiles<format, kZeros, 2>(args, tile * kTileRows);
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
#pragma GCC unroll 16
  for (int k = 0; k < kProbeSums; ++k) sums[k] = _mm512_set1_epi32(k);
  const __m512i x = _mm512_set1_epi8(3);
  for (int64_t i = 0; i < rounds; ++i) {
    const __m512i w = _mm512_set1_epi8(static_cast<char>(i & 15));
#pragma GCC unroll 16
    for (int k = 0; k < kProbeSums; ++k) AddByteProducts(w, x, &sums[k]);
  }
  __m512i total = sums[0];
#pragma GCC unroll 16
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
