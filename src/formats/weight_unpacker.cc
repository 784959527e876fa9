#include "formats/weight_unpacker.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "base/quote.h"
#include "base/types.h"
#include "sys/thread_pool.h"
#include "tensor/group_tiles.h"
#include "tensor/scalar.h"

namespace hadal {
namespace {

// What the rows of a matrix have in common.
struct Survey {
  std::atomic<bool> are_finite = true;      // scales
  std::atomic<bool> fit_binary16 = true;    // scales
  std::atomic<bool> are_in_middle = true;   // zero points
  std::atomic<bool> have_opposites = true;  // codes of eight bits: none is the lowest

  void SeeRow(const PackedWeight& weight, int row) {
    for (int group = 0; group < weight.num_groups; ++group) {
      const float scale = weight.Scale(row, group);
      if (!std::isfinite(scale)) are_finite = false;
      if (Fp16ToFloat(FloatToFp16(scale)) != scale) fit_binary16 = false;
      if (weight.ZeroPoint(row, group) != weight.middle()) are_in_middle = false;
    }
    if (weight.bits != 8) return;
    std::vector<uint8_t> codes(static_cast<size_t>(weight.cols));
    weight.RowCodes(row, codes);
    if (std::find(codes.begin(), codes.end(), 0) != codes.end()) have_opposites = false;
  }
};

// Groups of the matrix cut into groups that tiles can have, with the same scales.
int TileGroupSize(const PackedWeight& weight) {
  if (weight.num_groups == 1 && weight.group_size >= weight.cols) {
    return weight.cols % kSmallestGroup == 0 ? 128 : 0;
  }
  for (const int size : {128, 64, 32}) {
    if (weight.group_size % size == 0) return size;
  }
  return 0;
}

void StoreRow(const PackedWeight& weight, const GroupShape& shape, int row,
              std::span<std::byte> tiles) {
  std::vector<uint8_t> stored(static_cast<size_t>(weight.cols));
  weight.RowCodes(row, stored);
  std::vector<int8_t> codes(stored.size());
  const int offset = weight.bits == 8 ? 128 : 0;
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<int8_t>(stored[i] - offset);
  for (int group = 0; group < NumGroups(shape, weight.cols); ++group) {
    const GroupSpan span = SpanOfGroup(shape, weight.cols, group);
    const int from = weight.GroupOf(span.begin);
    StoreGroup(shape, weight.cols, row, group,
               {.codes = std::span(codes).subspan(static_cast<size_t>(span.begin),
                                                  static_cast<size_t>(span.size)),
                .scale_bits = FloatToFp16(weight.Scale(row, from)),
                .zero_point = shape.has_zero_points ? weight.ZeroPoint(row, from) : 8},
               tiles);
  }
}

// Reads all scales and zero points, and of eight bits all codes.
Result<std::optional<GroupShape>> FindTiles(const PackedWeight& weight, ThreadPool* pool) {
  Survey survey;
  pool->ParallelFor(weight.rows, [&](int row, int) { survey.SeeRow(weight, row); });
  if (!survey.are_finite) {
    return Status::Corrupt(fmt::format("tensor {}: expected finite scales, found another value",
                                       Quoted(weight.scales->name)));
  }
  const int group_size = TileGroupSize(weight);
  const bool has_zero_points = !survey.are_in_middle;
  const bool is_exact = survey.fit_binary16 && group_size > 0 &&
                        weight.cols % kSmallestGroup == 0 && weight.group_of_col == nullptr &&
                        (weight.bits == 4 || (survey.have_opposites && !has_zero_points));
  if (!is_exact) return std::optional<GroupShape>();
  const QuantFormat format = weight.bits == 4 ? QuantFormat::kInt4Group : QuantFormat::kInt8Group;
  return std::optional(GroupShape{format, group_size, has_zero_points});
}

void UnpackToTiles(const PackedWeight& weight, const GroupShape& shape, ThreadPool* pool,
                   std::span<std::byte> tiles) {
  pool->ParallelFor(NumTiles(weight.rows), [&](int tile, int) {
    const int last = std::min((tile + 1) * kTileRows, weight.rows);
    for (int row = tile * kTileRows; row < last; ++row) StoreRow(weight, shape, row, tiles);
  });
}

void UnpackToFloats(const PackedWeight& weight, ThreadPool* pool, std::span<float> out) {
  pool->ParallelFor(weight.rows, [&](int row, int) {
    const auto cols = static_cast<size_t>(weight.cols);
    weight.DecodeRow(row, out.subspan(static_cast<size_t>(row) * cols, cols));
  });
}

// Eight bits with the code -128, which tiles cannot hold: blocks of Q8_0 can.
bool FitsQ8Blocks(const PackedWeight& weight) {
  return weight.bits == 8 && weight.zeros == nullptr && weight.group_of_col == nullptr &&
         TileGroupSize(weight) > 0;
}

// Rows of Q8_0: every 32 columns their scale in binary16, then the codes. False when a scale does
// not fit.
bool StoreQ8Row(const PackedWeight& weight, int row, std::byte* out) {
  std::vector<uint8_t> codes(static_cast<size_t>(weight.cols));
  weight.RowCodes(row, codes);
  for (int col = 0; col < weight.cols; col += kSmallestGroup) {
    const float scale = weight.Scale(row, weight.GroupOf(col));
    const uint16_t bits = FloatToFp16(scale);
    if (Fp16ToFloat(bits) != scale) return false;
    std::memcpy(out, &bits, sizeof(bits));
    out += sizeof(bits);
    for (int i = 0; i < kSmallestGroup; ++i) {
      *out++ = static_cast<std::byte>(codes[static_cast<size_t>(col + i)] ^ 0x80);
    }
  }
  return true;
}

bool UnpackToQ8Blocks(const PackedWeight& weight, ThreadPool* pool, std::byte* out) {
  const int64_t row_bytes = RowBytesOf(QuantFormat::kQ8_0, weight.cols);
  std::atomic<bool> fits = true;
  pool->ParallelFor(weight.rows, [&](int row, int) {
    if (!StoreQ8Row(weight, row, out + row * row_bytes)) fits = false;
  });
  return fits;
}

}  // namespace

struct WeightUnpacker::State {
  explicit State(int num_threads) : pool(num_threads) {}
  ThreadPool pool;
};

WeightUnpacker::WeightUnpacker(int num_threads) : state_(std::make_unique<State>(num_threads)) {}
WeightUnpacker::~WeightUnpacker() = default;

Result<std::optional<GroupShape>> WeightUnpacker::FindExactTiles(const PackedWeight& weight) {
  return FindTiles(weight, &state_->pool);
}

Result<UnpackedMatrix> WeightUnpacker::Unpack(const PackedWeight& weight, bool wants_floats) {
  ASSIGN_OR_RETURN(std::optional<GroupShape> shape, FindTiles(weight, &state_->pool));
  if (wants_floats) shape.reset();
  const int64_t bytes = shape ? GroupedBytes(*shape, weight.rows, weight.cols)
                              : int64_t{weight.rows} * weight.cols * 4;
  UnpackedMatrix unpacked;
  if (!shape && !wants_floats && FitsQ8Blocks(weight)) {
    const int64_t block_bytes = weight.rows * RowBytesOf(QuantFormat::kQ8_0, weight.cols);
    ASSIGN_OR_RETURN(unpacked.memory, Buffer::Allocate(block_bytes));
    if (UnpackToQ8Blocks(weight, &state_->pool, unpacked.memory.data())) {
      unpacked.matrix = {.format = QuantFormat::kQ8_0,
                         .rows = weight.rows,
                         .cols = weight.cols,
                         .data = unpacked.memory.data()};
      return unpacked;
    }
  }
  ASSIGN_OR_RETURN(unpacked.memory, Buffer::Allocate(bytes));
  std::byte* data = unpacked.memory.data();
  if (shape) {
    UnpackToTiles(weight, *shape, &state_->pool, {data, static_cast<size_t>(bytes)});
    unpacked.matrix = GroupedView(*shape, weight.rows, weight.cols, data);
  } else {
    UnpackToFloats(weight, &state_->pool,
                   {reinterpret_cast<float*>(data), static_cast<size_t>(bytes / 4)});
    unpacked.matrix = {
        .format = QuantFormat::kF32, .rows = weight.rows, .cols = weight.cols, .data = data};
  }
  return unpacked;
}

}  // namespace hadal
