#include "kernels/self_test.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace hadal {
namespace {

using Floats = std::vector<float>;

constexpr const char* kFormatNames[kNumRowFormats] = {"F32", "BF16", "F16", "F8_E4M3"};
// Neither sizes nor counts are multiples of what kernels take at a time.
constexpr int kCols = 275, kOutputs = 29;

class Random {
 public:
  uint32_t Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 33);
  }
  // Numbers in [-1, 1].
  Floats Take(int count) {
    Floats values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(Next() % 20001) / 10000.0f - 1.0f;
    return values;
  }

 private:
  uint64_t state_ = 1;
};

// What one kernel wrote.
struct Passage {
  std::string kernel;
  Floats values;
};
using Transcript = std::vector<Passage>;

// Stored weights: ordinary numbers, and in one row of four all codes of E4M3, NaN included.
std::vector<uint8_t> StoredWeights(QuantFormat format, Random* random) {
  const int count = kCols * kOutputs;
  std::vector<uint8_t> bytes(static_cast<size_t>(count * ElementBytes(format)));
  const auto store = [&bytes](int idx, auto value) {
    std::memcpy(bytes.data() + static_cast<size_t>(idx) * sizeof(value), &value, sizeof(value));
  };
  for (int i = 0; i < count; ++i) {
    const uint32_t bits = random->Next();
    switch (format) {
      case QuantFormat::kF32:
        store(i, std::bit_cast<float>((bits & 0x807FFFFF) | 0x3F000000));
        break;
      case QuantFormat::kBF16:
        store(i, static_cast<uint16_t>((bits & 0x807F) | 0x3F00));
        break;
      case QuantFormat::kF16:
        store(i, static_cast<uint16_t>(bits & 0xBFFF));
        break;
      case QuantFormat::kF8Block128:
        store(i, static_cast<uint8_t>(i / kCols % 4 == 0 ? bits : bits & 0xF7));
        break;
      default:
        break;  // grouped formats: TryGrouped
    }
  }
  return bytes;
}

void TryFormat(const KernelTable& kernels, QuantFormat format, Transcript* transcript) {
  Random random;
  const std::vector<uint8_t> data = StoredWeights(format, &random);
  const Floats scales = random.Take(3);
  const WeightRows weights = {.data = data.data(),
                              .scales = scales.data(),
                              .scale_stride = 3,
                              .first_row = 0,
                              .cols = kCols};
  const auto idx = static_cast<size_t>(format);
  const std::string suffix = std::string(", ") + kFormatNames[idx];
  for (int num_rows : {1, 2, 3, 4, 7}) {
    const Floats x = random.Take(num_rows * kCols);
    Floats product(static_cast<size_t>(num_rows * kOutputs));
    kernels.matmul[idx]({.x = x.data(),
                         .x_stride = kCols,
                         .num_rows = num_rows,
                         .weights = weights,
                         .num_outputs = kOutputs,
                         .out = product.data(),
                         .out_stride = kOutputs,
                         .accumulate = false});
    transcript->push_back({"matmul" + suffix, product});
    Floats sum(static_cast<size_t>(num_rows * kCols));
    kernels.weighted_sum[idx]({.x = x.data(),
                               .x_stride = kCols,
                               .num_rows = num_rows,
                               .weights = weights,
                               .num_weight_rows = kOutputs,
                               .out = sum.data(),
                               .out_stride = kCols});
    transcript->push_back({"weighted_sum" + suffix, sum});
  }
  Floats row(kCols);
  kernels.decode_row[idx](weights, kOutputs - 1, row.data());
  transcript->push_back({"decode_row" + suffix, row});
}

// Random codes with scales around 0.01, two tiles of them, the second not full.
std::vector<std::byte> GroupedWeights(const GroupShape& shape, int cols, Random* random) {
  std::vector<std::byte> tiles(static_cast<size_t>(2 * TileBytes(shape, cols)));
  for (std::byte& byte : tiles) byte = static_cast<std::byte>(random->Next() | 1);  // never -128
  for (int tile = 0; tile < 2; ++tile) {
    std::byte* block = tiles.data() + tile * TileBytes(shape, cols);
    for (int col = 0; col < cols; col += shape.group_size) {
      const int size = std::min(shape.group_size, cols - col);
      for (int r = 0; r < kTileRows; ++r) {
        const auto scale = static_cast<uint16_t>(0x2000 | (random->Next() & 0x3FF));
        std::memcpy(block + CodeBytes(shape, size) + 2 * r, &scale, sizeof(scale));
      }
      block += BlockBytes(shape, size);
    }
  }
  return tiles;
}

void TryGrouped(const KernelTable& kernels, const GroupShape& shape, Transcript* transcript) {
  constexpr int kGroupedCols = 352, kMaxRows = 9, kGroupedOutputs = 27;
  Random random;
  const std::vector<std::byte> tiles = GroupedWeights(shape, kGroupedCols, &random);
  const Floats x = random.Take(kMaxRows * kGroupedCols);
  const int64_t row_bytes = kernels.rounded_row_bytes[RoundedIdx(shape.format)](
      shape.format, shape.group_size, kGroupedCols);
  std::vector<std::byte> rows(static_cast<size_t>(kMaxRows * row_bytes));
  for (int t = 0; t < kMaxRows; ++t) {
    kernels.round_row[RoundedIdx(shape.format)]({.x = x.data() + t * kGroupedCols,
                                                 .cols = kGroupedCols,
                                                 .format = shape.format,
                                                 .group_size = shape.group_size,
                                                 .out = rows.data() + t * row_bytes});
  }
  const std::string name = std::string("rounded_matmul, ") +
                           (shape.format == QuantFormat::kInt4Group ? "INT4" : "INT8") +
                           " in groups of " + std::to_string(shape.group_size);
  for (int num_rows : {1, 2, 3, 4, kMaxRows}) {
    Floats product(static_cast<size_t>(num_rows * kGroupedOutputs));
    kernels.rounded_matmul[RoundedIdx(shape.format)](
        {.x = rows.data(),
         .row_bytes = row_bytes,
         .row_ids = nullptr,
         .num_rows = num_rows,
         .weights = {.data = tiles.data(),
                     .scales = nullptr,
                     .scale_stride = 0,
                     .first_row = 0,
                     .cols = kGroupedCols,
                     .group_size = shape.group_size,
                     .has_zero_points = shape.has_zero_points},
         .num_outputs = kGroupedOutputs,
         .out = product.data(),
         .out_stride = kGroupedOutputs,
         .accumulate = false});
    transcript->push_back({name, product});
  }
}

void TryCacheRows(const KernelTable& kernels, Transcript* transcript) {
  constexpr int kWidth = 300;
  Random random;
  const Floats x = random.Take(kWidth);
  for (int type = 0; type < kNumCacheTypes; ++type) {
    std::vector<std::byte> row(
        static_cast<size_t>(CacheRowBytes(static_cast<CacheType>(type), kWidth)));
    Floats back(kWidth);
    kernels.store_cache_row[type](x.data(), kWidth, row.data());
    kernels.load_cache_row[type](row.data(), kWidth, 0, back.data());
    transcript->push_back({"cache rows", back});
  }
}

void TryAttention(const KernelTable& kernels, Transcript* transcript) {
  constexpr int kQueries = 7, kKeys = 70, kDim = 83;
  Random random;
  const Floats queries = random.Take(kQueries * kDim), keys = random.Take(kKeys * kDim);
  std::vector<const float*> pointers;
  for (int j = 0; j < kKeys; ++j) pointers.push_back(keys.data() + j * kDim);
  Floats scores(kQueries * kKeys), out(kQueries * kDim);
  kernels.attention_scores({.queries = queries.data(),
                            .query_stride = kDim,
                            .num_queries = kQueries,
                            .keys = pointers.data(),
                            .num_keys = kKeys,
                            .dim = kDim,
                            .scale = 0.3f,
                            .scores = scores.data(),
                            .score_stride = kKeys});
  const std::vector<int32_t> limits = {0, 1, 64, 65, 66, 69, 70};
  kernels.attention_values({.weights = scores.data(),
                            .weight_stride = kKeys,
                            .num_queries = kQueries,
                            .limits = limits.data(),
                            .values = pointers.data(),
                            .num_values = kKeys,
                            .dim = kDim,
                            .out = out.data(),
                            .out_stride = kDim});
  transcript->push_back({"attention_scores", scores});
  transcript->push_back({"attention_values", out});
}

void TryAttentionWords(const KernelTable& kernels, Transcript* transcript) {
  constexpr int kQueries = 7, kKeys = 50, kDim = 83, kValueDim = 70;
  Random random;
  const auto round = [&](int num_rows, int largest) {
    const Floats x = random.Take(num_rows * kDim);
    std::vector<std::byte> rows(static_cast<size_t>(num_rows * WordRowBytes(kDim)));
    for (int r = 0; r < num_rows; ++r) {
      kernels.round_words(x.data() + r * kDim, kDim, largest, rows.data() + r * WordRowBytes(kDim));
    }
    return rows;
  };
  const std::vector<std::byte> queries = round(kQueries, kLargestFactorWord);
  const std::vector<std::byte> keys = round(kKeys, kLargestWord);
  Floats scores(kQueries * kKeys), out(kQueries * kValueDim);
  alignas(64) std::byte panel[WordPanelBytes(kDim)];
  kernels.turn_words({.rows = queries.data(),
                      .row_bytes = WordRowBytes(kDim),
                      .cols = kDim,
                      .num_rows = kQueries,
                      .dim = kDim,
                      .scale = 0.3f,
                      .panel = panel});
  kernels.word_scores({.panel = panel,
                       .num_queries = kQueries,
                       .keys = keys.data(),
                       .key_bytes = WordRowBytes(kDim),
                       .key_cols = kDim,
                       .num_keys = kKeys,
                       .dim = kDim,
                       .scores = scores.data(),
                       .score_stride = kKeys});
  transcript->push_back({"word_scores", scores});
  for (float& score : scores) score = std::fabs(score);
  const std::vector<int32_t> limits = {0, 1, 16, 33, 48, 49, 50};
  kernels.word_values({.weights = scores.data(),
                       .weight_stride = kKeys,
                       .num_queries = kQueries,
                       .limits = limits.data(),
                       .values = keys.data(),
                       .value_bytes = WordRowBytes(kDim),
                       .value_cols = kDim,
                       .num_values = kKeys,
                       .dim = kValueDim,
                       .out = out.data(),
                       .out_stride = kValueDim});
  transcript->push_back({"word_values", out});
}

void TryElementwise(const KernelTable& kernels, Transcript* transcript) {
  constexpr int kSize = 94;
  Random random;
  const Floats x = random.Take(kSize), gain = random.Take(kSize), bias = random.Take(kSize);
  Floats out(kSize);
  kernels.rms_norm(x.data(), gain.data(), kSize, 1e-6f, out.data());
  transcript->push_back({"rms_norm", out});
  kernels.layer_norm(x.data(), gain.data(), bias.data(), kSize, 1e-6f, out.data());
  transcript->push_back({"layer_norm", out});
  kernels.silu_mul(x.data(), gain.data(), kSize, out.data());
  transcript->push_back({"silu_mul", out});
  kernels.add_scaled(x.data(), 0.7f, kSize, out.data());
  transcript->push_back({"add_scaled", out});
  kernels.rope_interleaved(out.data(), gain.data(), bias.data(), kSize);
  transcript->push_back({"rope_interleaved", out});
  kernels.rope_half_split(out.data(), gain.data(), bias.data(), kSize);
  transcript->push_back({"rope_half_split", out});
  kernels.scale(out.data(), 10.0f, kSize);
  transcript->push_back({"scale", out});
  const float largest = kernels.max(out.data(), kSize);
  transcript->push_back({"max", {largest}});
  const float sum = kernels.exp_and_sum(out.data(), kSize, largest);
  out.push_back(sum);
  transcript->push_back({"exp_and_sum", out});
}

Transcript TryAll(const KernelTable& kernels) {
  Transcript transcript;
  for (int format = 0; format < kNumRowFormats; ++format) {
    TryFormat(kernels, static_cast<QuantFormat>(format), &transcript);
  }
  for (const int group_size : {32, 64, 128}) {
    TryGrouped(kernels, {QuantFormat::kInt8Group, group_size, false}, &transcript);
    TryGrouped(kernels, {QuantFormat::kInt4Group, group_size, false}, &transcript);
    TryGrouped(kernels, {QuantFormat::kInt4Group, group_size, true}, &transcript);
  }
  TryCacheRows(kernels, &transcript);
  TryAttention(kernels, &transcript);
  TryAttentionWords(kernels, &transcript);
  TryElementwise(kernels, &transcript);
  return transcript;
}

bool SameBits(const Floats& a, const Floats& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) return false;
  }
  return a.size() == b.size();
}

// Products of ones with values whose codes are known: 1, 1, 1 and 448 * 0.5.
bool KnowsFormats(const KernelTable& kernels) {
  const std::vector<uint32_t> ones32(40, 0x3F800000);
  const std::vector<uint16_t> ones_bf16(40, 0x3F80), ones_f16(40, 0x3C00);
  const std::vector<uint8_t> largest_e4m3(40, 0x7E);
  const void* data[kNumRowFormats] = {ones32.data(), ones_bf16.data(), ones_f16.data(),
                                      largest_e4m3.data()};
  const float expected[kNumRowFormats] = {40, 40, 40, 40 * 224};
  const Floats x(40, 1.0f);
  const float scale = 0.5f;
  for (size_t format = 0; format < kNumRowFormats; ++format) {
    float out = 0;
    kernels.matmul[format]({.x = x.data(),
                            .x_stride = 40,
                            .num_rows = 1,
                            .weights = {.data = data[format],
                                        .scales = &scale,
                                        .scale_stride = 1,
                                        .first_row = 0,
                                        .cols = 40},
                            .num_outputs = 1,
                            .out = &out,
                            .out_stride = 1,
                            .accumulate = false});
    if (out != expected[format]) return false;
  }
  return true;
}

}  // namespace

std::string FindFaultyKernel(const KernelTable& kernels, const KernelTable& reference) {
  if (!KnowsFormats(kernels)) return "matmul, known values";
  const Transcript expected = TryAll(reference), found = TryAll(kernels);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!SameBits(expected[i].values, found[i].values)) return expected[i].kernel;
  }
  return {};
}

}  // namespace hadal
