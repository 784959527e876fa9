// Attention on rows of words, in plain loops; kernel_table.h has the formulas.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/reference/decode.h"
#include "kernels/reference/parts.h"

namespace hadal::reference {
namespace {

constexpr float kSmallestMagnitude = 1e-30f;

// A row of words, to read or to write.
struct WordRow {
  std::byte* row;
  int cols;

  int Word(int i) const { return LoadUnaligned<int16_t>(row, i); }
  float Scale(int group) const { return LoadUnaligned<float>(row + WordScalesOffset(cols), group); }
  void SetWord(int i, int word) const {
    const auto stored = static_cast<int16_t>(word);
    std::memcpy(row + 2 * i, &stored, sizeof(stored));
  }
  void SetScale(int group, float scale) const {
    std::memcpy(row + WordScalesOffset(cols) + 4 * group, &scale, sizeof(scale));
  }
};

WordRow RowToRead(const std::byte* row, int cols) {
  return {const_cast<std::byte*>(row), cols};  // only read
}

float LargestMagnitude(const float* x, int count) {
  float largest = 0;
  for (int i = 0; i < count; ++i) {
    const float magnitude = std::fabs(x[i]);
    largest = std::isnan(magnitude) || std::isnan(largest) ? NAN : std::max(largest, magnitude);
  }
  return largest;
}

int ToWord(float x) {
  const float word = std::nearbyint(x);
  return std::fabs(word) <= 32767.0f ? static_cast<int>(word) : 0;  // NaN is in the scale
}

// What a group is divided and multiplied by.
struct Rounding {
  float scale, factor;
  Rounding(float magnitude, int largest)
      : scale(magnitude < kSmallestMagnitude ? 0.0f : magnitude / static_cast<float>(largest)),
        factor(magnitude < kSmallestMagnitude ? 0.0f : static_cast<float>(largest) / magnitude) {}
  int operator()(float x) const { return ToWord(x * factor); }
};

void RoundWords(const float* x, int cols, int largest, std::byte* row) {
  const WordRow to = {row, cols};
  for (int group = 0; group < NumCacheGroups(cols); ++group) {
    const int begin = group * kCacheGroup, end = std::min(begin + kCacheGroup, cols);
    const Rounding rounding(LargestMagnitude(x + begin, end - begin), largest);
    for (int i = begin; i < end; ++i) to.SetWord(i, rounding(x[i]));
    for (int i = end; i < begin + kCacheGroup; ++i) to.SetWord(i, 0);
    to.SetScale(group, rounding.scale);
  }
}

void LoadF32(const std::byte* row, int cols, std::byte* word_row) {
  RoundWords(reinterpret_cast<const float*>(row), cols, kLargestWord, word_row);
}

// Scales are powers of two: the one above the largest magnitude is 4096.
void LoadBf16(const std::byte* row, int cols, std::byte* word_row) {
  const WordRow to = {word_row, cols};
  for (int group = 0; group < NumCacheGroups(cols); ++group) {
    std::array<float, kCacheGroup> x{};
    const int begin = group * kCacheGroup, count = std::min(kCacheGroup, cols - begin);
    for (int i = 0; i < count; ++i) {
      x[static_cast<size_t>(i)] = DecodeBf16(LoadUnaligned<uint16_t>(row, begin + i));
    }
    const float magnitude = LargestMagnitude(x.data(), count);
    float scale = 0;
    if (!(magnitude < kSmallestMagnitude)) {
      scale = std::isfinite(magnitude) ? std::ldexp(1.0f, std::ilogb(magnitude) - 11) : magnitude;
    }
    const float factor = scale == 0.0f || !std::isfinite(scale) ? 0.0f : 1.0f / scale;
    for (int i = 0; i < kCacheGroup; ++i) {
      to.SetWord(begin + i, ToWord(x[static_cast<size_t>(i)] * factor));
    }
    to.SetScale(group, scale);
  }
}

void LoadQ8(const std::byte* row, int cols, std::byte* word_row) {
  const WordRow to = {word_row, cols};
  for (int i = 0; i < NumCacheGroups(cols) * kCacheGroup; ++i) {
    to.SetWord(i, i < cols ? static_cast<int8_t>(row[i]) : 0);
  }
  std::memcpy(word_row + WordScalesOffset(cols), row + (cols + 3) / 4 * 4,
              size_t{4} * static_cast<size_t>(NumCacheGroups(cols)));
}

void StoreQ16(const float* x, int cols, std::byte* row) { RoundWords(x, cols, kLargestWord, row); }

void LoadQ16(const std::byte* row, int cols, std::byte* word_row) {
  std::memcpy(word_row, row, static_cast<size_t>(WordRowBytes(cols)));
}

// A row of a panel: `dim` words and their scales, which hold the scale of the scores already.
WordRow PanelRow(std::byte* panel, int dim, int q) {
  return {panel + q * (WordScalesOffset(dim) + 4 * NumCacheGroups(dim)), dim};
}

void TurnWords(const WordPanelArgs& args) {
  for (int q = 0; q < args.num_rows; ++q) {
    const WordRow from = RowToRead(args.rows + q * args.row_bytes, args.cols);
    const WordRow to = PanelRow(args.panel, args.dim, q);
    for (int i = 0; i < args.dim; ++i) to.SetWord(i, from.Word(i));
    for (int group = 0; group < NumCacheGroups(args.dim); ++group) {
      to.SetScale(group, from.Scale(group) * args.scale);
    }
  }
}

void WordScores(const WordScoreArgs& args) {
  auto* panel = const_cast<std::byte*>(args.panel);  // only read
  for (int q = 0; q < args.num_queries; ++q) {
    const WordRow query = PanelRow(panel, args.dim, q);
    for (int j = 0; j < args.num_keys; ++j) {
      const WordRow key = RowToRead(args.keys + j * args.key_bytes, args.key_cols);
      float score = 0;
      for (int group = 0; group < NumCacheGroups(args.dim); ++group) {
        int32_t sum = 0;
        const int begin = group * kCacheGroup, end = std::min(begin + kCacheGroup, args.dim);
        for (int i = begin; i < end; ++i) sum += query.Word(i) * key.Word(i);
        score = std::fma(static_cast<float>(sum), key.Scale(group) * query.Scale(group), score);
      }
      const int64_t row = args.has_key_rows ? j : q, col = args.has_key_rows ? q : j;
      args.scores[row * args.score_stride + col] = score;
    }
  }
}

void WordValues(const WordValueArgs& args) {
  for (int q = 0; q < args.num_queries; ++q) {
    const int limit = args.limits[q];
    const float* weights = args.weights + q * args.weight_stride;
    const Rounding weight(LargestMagnitude(weights, limit), 1);
    for (int begin = 0; begin < args.dim; begin += kCacheGroup) {
      std::array<float, kWordTile> scales{};
      for (int j = 0; j < limit; ++j) {
        const WordRow value = RowToRead(args.values + j * args.value_bytes, args.value_cols);
        scales[static_cast<size_t>(j)] = value.Scale(begin / kCacheGroup);
      }
      const float largest = LargestMagnitude(scales.data(), limit);
      const Rounding scale(largest, kLargestFactorWord);
      const float factor = weight.scale * (largest * (1.0f / kLargestFactorWord));
      for (int c = begin; c < std::min(begin + kCacheGroup, args.dim); ++c) {
        int32_t sum = 0;
        for (int j = 0; j < limit; ++j) {
          const WordRow value = RowToRead(args.values + j * args.value_bytes, args.value_cols);
          const float share = weights[j] * weight.factor;
          sum += ToWord(share * (scales[static_cast<size_t>(j)] * scale.factor)) * value.Word(c);
        }
        float* out = args.out + q * args.out_stride + c;
        *out = std::fma(static_cast<float>(sum), factor, *out);
      }
    }
  }
}

}  // namespace

void AddAttentionWords(KernelTable* table) {
  table->round_words = RoundWords;
  table->load_cache_words[static_cast<int>(CacheType::kF32)] = LoadF32;
  table->load_cache_words[static_cast<int>(CacheType::kBF16)] = LoadBf16;
  table->load_cache_words[static_cast<int>(CacheType::kQ8)] = LoadQ8;
  table->load_cache_words[static_cast<int>(CacheType::kQ16)] = LoadQ16;
  table->store_cache_row[static_cast<int>(CacheType::kQ16)] = StoreQ16;
  table->turn_words = TurnWords;
  table->word_scores = WordScores;
  table->word_values = WordValues;
}

}  // namespace hadal::reference
