// Attention over a span of latents: the two small products that decide the speed of long contexts,
// the softmax between them, and the fold of W_UK into the query.
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/support/limits.h"
#include "kernels/dispatch.h"
#include "tensor/buffer.h"

namespace hadal::bench {
namespace {

constexpr int kKeys = 512;

// Rows one after another, as in a block of the cache, and a pointer to each.
struct Latents {
  std::vector<float> data;
  std::vector<const float*> rows;
  explicit Latents(int dim) : data(static_cast<size_t>(kKeys) * dim, 0.01f) {
    for (int i = 0; i < kKeys; ++i) rows.push_back(data.data() + static_cast<size_t>(i) * dim);
  }
};

void Scores(benchmark::State& state) {
  const int num_queries = static_cast<int>(state.range(0)), dim = static_cast<int>(state.range(1));
  const Latents keys(dim);
  std::vector<float> queries(static_cast<size_t>(num_queries) * dim, 0.5f);
  std::vector<float> scores(static_cast<size_t>(num_queries) * kKeys);
  const KernelTable& kernels = BestKernels();
  RunAgainstLimits(state, kernels, &Pool(1),
                   Work{4.0 * kKeys * dim, 2.0 * num_queries * kKeys * dim}, [&] {
                     kernels.attention_scores({.queries = queries.data(),
                                               .query_stride = dim,
                                               .num_queries = num_queries,
                                               .keys = keys.rows.data(),
                                               .num_keys = kKeys,
                                               .dim = dim,
                                               .scale = 0.1f,
                                               .scores = scores.data(),
                                               .score_stride = kKeys});
                   });
}

void Values(benchmark::State& state) {
  const int num_queries = static_cast<int>(state.range(0)), dim = static_cast<int>(state.range(1));
  const Latents values(576);
  std::vector<float> weights(static_cast<size_t>(num_queries) * kKeys, 0.001f);
  std::vector<int32_t> limits(static_cast<size_t>(num_queries), kKeys);
  std::vector<float> out(static_cast<size_t>(num_queries) * dim);
  const KernelTable& kernels = BestKernels();
  RunAgainstLimits(state, kernels, &Pool(1),
                   Work{4.0 * kKeys * dim, 2.0 * num_queries * kKeys * dim}, [&] {
                     kernels.attention_values({.weights = weights.data(),
                                               .weight_stride = kKeys,
                                               .num_queries = num_queries,
                                               .limits = limits.data(),
                                               .values = values.rows.data(),
                                               .num_values = kKeys,
                                               .dim = dim,
                                               .out = out.data(),
                                               .out_stride = dim});
                   });
}

// Rows of words, `count` tiles of them one after another as in the blocks of a q16 cache.
class WordTiles {
 public:
  WordTiles(int count, int cols)
      : row_bytes_(WordRowBytes(cols)),
        rows_(std::move(Buffer::Allocate(int64_t{count} * kWordTile * row_bytes_).value())),
        count_(count) {
    const std::vector<float> x(static_cast<size_t>(cols), 0.5f);
    for (int64_t r = 0; r < int64_t{count} * kWordTile; ++r) {
      BestKernels().round_words(x.data(), cols, kLargestWord, rows_.data() + r * row_bytes_);
    }
  }
  int64_t row_bytes() const { return row_bytes_; }
  const std::byte* tile(int idx) const { return rows_.data() + idx % count_ * tile_bytes(); }
  int64_t tile_bytes() const { return kWordTile * row_bytes_; }

 private:
  int64_t row_bytes_;
  Buffer rows_;
  int count_;
};

constexpr int kColdTiles = 2048;  // more than any cache holds
constexpr int kTilesAtOnce = 32;  // so that reading the clock costs nothing

void TileScores(benchmark::State& state) {
  const int num_queries = static_cast<int>(state.range(0)), dim = static_cast<int>(state.range(1));
  const WordTiles keys(state.range(2) != 0 ? kColdTiles : 1, dim), queries(1, dim);
  const KernelTable& kernels = BestKernels();
  Buffer panel = std::move(Buffer::Allocate(WordPanelBytes(dim)).value());
  kernels.turn_words({.rows = queries.tile(0),
                      .row_bytes = queries.row_bytes(),
                      .cols = dim,
                      .num_rows = num_queries,
                      .dim = dim,
                      .scale = 0.1f,
                      .panel = panel.data()});
  std::vector<float> scores(static_cast<size_t>(num_queries) * kWordTile);
  int tile = 0;
  RunAgainstLimits(state, kernels, &Pool(1),
                   Work{static_cast<double>(kTilesAtOnce * keys.tile_bytes()),
                        2.0 * kTilesAtOnce * num_queries * kWordTile * dim},
                   [&] {
                     for (int i = 0; i < kTilesAtOnce; ++i, ++tile) {
                       kernels.word_scores({.panel = panel.data(),
                                            .num_queries = num_queries,
                                            .keys = keys.tile(tile),
                                            .key_bytes = keys.row_bytes(),
                                            .key_cols = dim,
                                            .num_keys = kWordTile,
                                            .next_keys = keys.tile(tile + 1),
                                            .dim = dim,
                                            .scores = scores.data(),
                                            .score_stride = kWordTile});
                     }
                   });
}

void TileValues(benchmark::State& state) {
  const int num_queries = static_cast<int>(state.range(0)), dim = static_cast<int>(state.range(1));
  const WordTiles values(state.range(2) != 0 ? kColdTiles : 1, dim);
  const KernelTable& kernels = BestKernels();
  const std::vector<float> weights(static_cast<size_t>(num_queries) * kWordTile, 0.3f);
  const std::vector<int32_t> limits(static_cast<size_t>(num_queries), kWordTile);
  std::vector<float> out(static_cast<size_t>(num_queries) * dim);
  int tile = 0;
  RunAgainstLimits(state, kernels, &Pool(1),
                   Work{static_cast<double>(kTilesAtOnce * values.tile_bytes()),
                        2.0 * kTilesAtOnce * num_queries * kWordTile * dim},
                   [&] {
                     for (int i = 0; i < kTilesAtOnce; ++i, ++tile) {
                       kernels.word_values({.weights = weights.data(),
                                            .weight_stride = kWordTile,
                                            .num_queries = num_queries,
                                            .limits = limits.data(),
                                            .values = values.tile(tile),
                                            .value_bytes = values.row_bytes(),
                                            .value_cols = dim,
                                            .num_values = kWordTile,
                                            .dim = dim,
                                            .out = out.data(),
                                            .out_stride = dim});
                     }
                   });
}

// One row of the softmax: the largest, then exponentials and their sum.
void Softmax(benchmark::State& state) {
  std::vector<float> start(kKeys, -0.7f), x = start;
  const KernelTable& kernels = BestKernels();
  for (auto _ : state) {
    x = start;
    benchmark::DoNotOptimize(kernels.exp_and_sum(x.data(), kKeys, kernels.max(x.data(), kKeys)));
  }
  state.counters["exp/s"] = benchmark::Counter(static_cast<double>(state.iterations()) * kKeys,
                                               benchmark::Counter::kIsRate);
}

// q_latent = W_UK^T q of one head: [128, 512] as stored.
void FoldQuery(benchmark::State& state) {
  const int num_rows = static_cast<int>(state.range(0));
  const auto format = static_cast<QuantFormat>(state.range(1));
  constexpr int kNope = 128, kRank = 512, kHeads = 512;
  const int64_t head_bytes = kNope * kRank * ElementBytes(format);
  Buffer weights = std::move(Buffer::Allocate(head_bytes * kHeads).value());
  std::fill_n(weights.data(), weights.bytes(), std::byte{0x31});
  const std::vector<float> scales(4, 0.01f);
  std::vector<float> x(static_cast<size_t>(num_rows) * kNope, 0.5f);
  std::vector<float> out(static_cast<size_t>(num_rows) * kRank);
  const KernelTable& kernels = BestKernels();
  int head = 0;
  RunAgainstLimits(state, kernels, &Pool(1),
                   Work{static_cast<double>(head_bytes), 2.0 * num_rows * kNope * kRank}, [&] {
                     head = (head + 1) % kHeads;
                     kernels.weighted_sum[static_cast<int>(format)](
                         {.x = x.data(),
                          .x_stride = kNope,
                          .num_rows = num_rows,
                          .weights = {.data = weights.data() + head * head_bytes,
                                      .scales = scales.data(),
                                      .scale_stride = 4,
                                      .first_row = 0,
                                      .cols = kRank},
                          .num_weight_rows = kNope,
                          .out = out.data(),
                          .out_stride = kRank});
                   });
}

BENCHMARK(Scores)->ArgsProduct({{1, 4, 16, 64, 128}, {576, 192}})->MeasureProcessCPUTime();
BENCHMARK(Values)->ArgsProduct({{1, 4, 16, 64, 128}, {512, 128}})->MeasureProcessCPUTime();
BENCHMARK(TileScores)->ArgsProduct({{16, 64}, {576, 192}, {0, 1}})->MeasureProcessCPUTime();
BENCHMARK(TileValues)->ArgsProduct({{16, 64}, {512, 128}, {0, 1}})->MeasureProcessCPUTime();
BENCHMARK(Softmax)->MeasureProcessCPUTime();
BENCHMARK(FoldQuery)->ArgsProduct({{1, 8, 64}, {0, 1, 2, 3}})->MeasureProcessCPUTime();

}  // namespace
}  // namespace hadal::bench
