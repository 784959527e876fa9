// Products with stored weights: one row against the read limit, many rows against the arithmetic
// limit, each measured in the same run. Shapes are those of DeepSeek-V2-Lite and slices of V3.
#include <algorithm>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/support/limits.h"
#include "kernels/dispatch.h"
#include "sys/machine.h"
#include "tensor/buffer.h"

namespace hadal::bench {
namespace {

struct Shape {
  const char* name;
  int outputs, cols;
};

constexpr Shape kShapes[] = {
    {"lite_expert_up", 1408, 2048},   {"lite_expert_down", 2048, 1408},
    {"lite_dense_down", 2048, 10944}, {"lite_query", 3072, 2048},
    {"lite_head", 102400, 2048},      {"v3_expert_up", 2048, 7168},
    {"v3_query_up", 24576, 1536},     {"v3_out", 7168, 16384},
};

const char* Name(QuantFormat format) {
  constexpr const char* kNames[] = {"f32", "bf16", "f16", "f8"};
  return kNames[static_cast<int>(format)];
}

// Copies of one weight one after another, so many that no cache holds them; calls take them in
// turn.
struct Weights {
  Buffer data, scales;
  int copies = 1, next = 0;
  int64_t bytes = 0;

  Weights(QuantFormat format, const Shape& shape) {
    constexpr int64_t kWorkingSet = int64_t{192} << 20;
    bytes = int64_t{shape.outputs} * shape.cols * ElementBytes(format);
    copies = static_cast<int>(std::max<int64_t>(1, kWorkingSet / bytes));
    data = std::move(Buffer::Allocate(bytes * copies).value());
    // 0x31 in every byte: small numbers in all formats.
    std::fill_n(data.data(), bytes * copies, std::byte{0x31});
    const int64_t blocks = int64_t{(shape.outputs + 127) / 128} * ((shape.cols + 127) / 128);
    scales = std::move(Buffer::Allocate(blocks * 4).value());
    std::fill_n(reinterpret_cast<float*>(scales.data()), blocks, 0.01f);
  }
  const std::byte* Next() {
    next = (next + 1) % copies;
    return data.data() + next * bytes;
  }
};

void MatMul(benchmark::State& state, const KernelTable* kernels, QuantFormat format, Shape shape,
            int num_rows, int num_threads) {
  Weights weights(format, shape);
  std::vector<float> x(static_cast<size_t>(num_rows) * shape.cols, 0.5f);
  std::vector<float> out(static_cast<size_t>(num_rows) * shape.outputs);
  ThreadPool& pool = Pool(num_threads);
  // Enough pieces to even out the threads, each worth some microseconds.
  const int piece = num_rows >= 16 ? 48 : 64;
  const auto product = [&] {
    const std::byte* data = weights.Next();
    const bool has_scales = format == QuantFormat::kF8Block128;
    pool.ParallelFor((shape.outputs + piece - 1) / piece, [&](int idx, int) {
      const int first = idx * piece;
      kernels->matmul[static_cast<int>(format)](
          {.x = x.data(),
           .x_stride = shape.cols,
           .num_rows = num_rows,
           .weights = {.data = data + int64_t{first} * shape.cols * ElementBytes(format),
                       .scales = has_scales ? weights.scales.data() : nullptr,
                       .scale_stride = (shape.cols + 127) / 128,
                       .first_row = first,
                       .cols = shape.cols},
           .num_outputs = std::min(piece, shape.outputs - first),
           .out = out.data() + first,
           .out_stride = shape.outputs,
           .accumulate = false});
    });
  };
  const double ops = 2.0 * num_rows * shape.outputs * shape.cols;
  RunAgainstLimits(state, *kernels, &pool, {static_cast<double>(weights.bytes), ops}, product);
}

void Register(const KernelTable* kernels, QuantFormat format, const Shape& shape, int num_rows,
              int num_threads) {
  const std::string name = std::string("matmul/") + kernels->name + "/" + Name(format) + "/" +
                           shape.name + "/rows:" + std::to_string(num_rows) +
                           "/threads:" + std::to_string(num_threads);
  benchmark::RegisterBenchmark(name.c_str(), MatMul, kernels, format, shape, num_rows, num_threads)
      ->Unit(benchmark::kMicrosecond)
      ->MeasureProcessCPUTime();
}

const bool kRegistered = [] {
  const KernelTable* kernels = &BestKernels();
  for (int threads : {1, NumUsableCores()}) {
    for (QuantFormat format :
         {QuantFormat::kF32, QuantFormat::kBF16, QuantFormat::kF16, QuantFormat::kF8Block128}) {
      for (const Shape& shape : kShapes) {
        for (int rows : {1, 2, 4, 8, 16, 48, 512}) Register(kernels, format, shape, rows, threads);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace hadal::bench
