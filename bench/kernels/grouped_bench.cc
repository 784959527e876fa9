// Products of grouped weights with rows rounded to bytes: one row against the read limit, many rows
// against the rate of the set's own integer products, each measured in the same run. Shapes are
// those of DeepSeek-V2-Lite.
#include <algorithm>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/support/limits.h"
#include "kernels/dispatch.h"
#include "sys/machine.h"
#include "tensor/buffer.h"
#include "tensor/group_tiles.h"

namespace hadal::bench {
namespace {

struct Shape {
  const char* name;
  int outputs, cols;
};

constexpr Shape kShapes[] = {
    {"lite_expert_up", 1408, 2048}, {"lite_expert_down", 2048, 1408}, {"lite_query", 3072, 2048}};

struct Format {
  const char* name;
  GroupShape shape;
};

constexpr Format kFormats[] = {{"int4_g32", {QuantFormat::kInt4Group, 32, false}},
                               {"int4_g64", {QuantFormat::kInt4Group, 64, false}},
                               {"int4_g64z", {QuantFormat::kInt4Group, 64, true}},
                               {"int4_g128", {QuantFormat::kInt4Group, 128, false}},
                               {"int8_g32", {QuantFormat::kInt8Group, 32, false}},
                               {"int8_g128", {QuantFormat::kInt8Group, 128, false}}};

// Copies of one weight one after another, so many that no cache holds them; calls take them in
// turn.
struct Weights {
  Buffer data;
  int copies = 1, next = 0;
  int64_t bytes = 0;

  Weights(const GroupShape& group_shape, const Shape& shape) {
    constexpr int64_t kWorkingSet = int64_t{192} << 20;
    bytes = GroupedBytes(group_shape, shape.outputs, shape.cols);
    copies = static_cast<int>(std::max<int64_t>(1, kWorkingSet / bytes));
    data = std::move(Buffer::Allocate(bytes * copies).value());
    std::fill_n(data.data(), bytes * copies, std::byte{0x31});
  }
  const std::byte* Next() {
    next = (next + 1) % copies;
    return data.data() + next * bytes;
  }
};

struct Rows {
  int64_t row_bytes;
  std::vector<std::byte> bytes;

  Rows(const KernelTable& kernels, int num_rows, int cols, const GroupShape& shape)
      : row_bytes(kernels.rounded_row_bytes[RoundedIdx(shape.format)](shape.format,
                                                                      shape.group_size, cols)),
        bytes(static_cast<size_t>(num_rows * row_bytes)) {
    std::vector<float> x(static_cast<size_t>(cols));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) - 8.0f;
    for (int t = 0; t < num_rows; ++t) {
      kernels.round_row[RoundedIdx(shape.format)](
          {x.data(), cols, shape.format, shape.group_size, bytes.data() + t * row_bytes});
    }
  }
};

void MatMul(benchmark::State& state, const KernelTable* kernels, Format format, Shape shape,
            int num_rows, int num_threads) {
  Weights weights(format.shape, shape);
  const Rows x(*kernels, num_rows, shape.cols, format.shape);
  std::vector<float> out(static_cast<size_t>(num_rows) * shape.outputs);
  ThreadPool& pool = Pool(num_threads);
  constexpr int kPiece = 64;
  const auto product = [&] {
    const QuantizedMatrix weight =
        GroupedView(format.shape, shape.outputs, shape.cols, weights.Next());
    pool.ParallelFor((shape.outputs + kPiece - 1) / kPiece, [&](int idx, int) {
      const int first = idx * kPiece;
      kernels->rounded_matmul[RoundedIdx(format.shape.format)](
          {.x = x.bytes.data(),
           .row_bytes = x.row_bytes,
           .row_ids = nullptr,
           .num_rows = num_rows,
           .weights = {.data = weight.data + weight.OffsetOfRow(first),
                       .scales = nullptr,
                       .scale_stride = 0,
                       .first_row = first,
                       .cols = shape.cols,
                       .group_size = weight.group_size,
                       .has_zero_points = weight.has_zero_points},
           .num_outputs = std::min(kPiece, shape.outputs - first),
           .out = out.data() + first,
           .out_stride = shape.outputs,
           .accumulate = false});
    });
  };
  const double ops = 2.0 * num_rows * shape.outputs * shape.cols;
  RunAgainstLimits(state, *kernels, &pool, {static_cast<double>(weights.bytes), ops}, product);
}

const bool kRegistered = [] {
  const KernelTable* kernels = &BestKernels();
  for (int threads : {1, NumUsableCores()}) {
    for (const Format& format : kFormats) {
      for (const Shape& shape : kShapes) {
        for (int rows : {1, 2, 3, 4, 6, 8, 16, 48, 512}) {
          const std::string name = std::string("grouped/") + kernels->name + "/" + format.name +
                                   "/" + shape.name + "/rows:" + std::to_string(rows) +
                                   "/threads:" + std::to_string(threads);
          benchmark::RegisterBenchmark(name.c_str(), MatMul, kernels, format, shape, rows, threads)
              ->Unit(benchmark::kMicrosecond)
              ->MeasureProcessCPUTime();
        }
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace hadal::bench
