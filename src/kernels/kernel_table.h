// Every kernel as a function pointer, with its contract. Arithmetic on raw pointers: no threads, no
// allocation, no errors. Activations are float32 and every sum is accumulated in float32.
//
// The rule that everything rests on: what a kernel writes for one row (one token, one head) has the
// same bits whether that row is processed alone or among others, and however the outputs are
// divided over calls. So each kernel fixes the order of its sums per output, and tiles only over
// independent outputs.
//
// Any size >= 1 is allowed; kernels handle tails themselves. No alignment is assumed of weights
// (they lie where the file put them); float pointers are 4-byte aligned.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/block_layout.h"

namespace hadal {

// Rows of a weight as stored. See QuantizedMatrix for the meaning of the scales.
struct WeightRows {
  const void* data;    // row 0
  const void* scales;  // kF8Block128 only: float [.., scale_stride], unaligned
  int scale_stride;
  int first_row;  // row r uses scale row (first_row + r) / 128
  int cols;       // elements of a row; rows (or tiles) follow each other without gaps
  // Of grouped formats, where row 0 begins a tile and cols is a multiple of 32.
  int group_size = 0;
  bool has_zero_points = false;
  // Of blocked formats: rows are turned in eights (block_layout.h); only turned_matmul takes
  // such, and num_outputs is then a multiple of 16.
  bool is_turned = false;
};

struct MatMulArgs {
  const float* x;  // [num_rows, cols], rows x_stride apart
  int64_t x_stride;
  int num_rows;
  WeightRows weights;  // [num_outputs, cols]
  int num_outputs;
  float* out;  // [num_rows, num_outputs], rows out_stride apart; must not overlap x
  int64_t out_stride;
  bool accumulate;  // out += product instead of out = product
};

// Activations rounded to bytes: in each group of columns of a row
//   scale = max |x| / 127,   code = x * (127 / max |x|) rounded to even, in [-127, 127];
// a group whose largest magnitude is below 1e-30 has scale and codes 0; NaN and infinity make the
// scale so. How rounded rows lie in memory is the table's own affair.
struct RoundArgs {
  const float* x;  // [cols]
  int cols;
  QuantFormat format;  // of the weight that the row will meet
  int group_size;      // 32 for a blocked format
  std::byte* out;      // rounded_row_bytes() bytes, a multiple of 4; aligned to 4
};

// Products of grouped or blocked weights with rounded rows.
//   out[t, o] = sum over groups g of (sum over i in g of (code[o, i] - zero[o, g]) * x_code[t, i])
//   *
//               (scale[o, g] * x_scale[t, g])
// The inner sum is exact, the outer one is a chain of fused multiply-adds in ascending g, from
// zero. A group of a blocked format is what shares a scale, and its zero the type's; where the type
// has a minimum, min[o, g] * (x_scale[t, g] * sum over i in g of x_code[t, i]) is added, or taken
// away, by a fused multiply-add after each group.
struct RoundedMatMulArgs {
  const std::byte* x;  // rows rounded for the weight's format and group size, row_bytes apart
  int64_t row_bytes;
  const int32_t* row_ids;  // row t of the product is row row_ids[t] of x; null: row t
  int num_rows;
  WeightRows weights;  // [num_outputs, cols]
  int num_outputs;
  float* out;  // [num_rows, num_outputs], rows out_stride apart
  int64_t out_stride;
  bool accumulate;  // out += product instead of out = product
};

struct WeightedSumArgs {
  const float* x;  // [num_rows, num_weight_rows], rows x_stride apart
  int64_t x_stride;
  int num_rows;
  WeightRows weights;  // [num_weight_rows, cols]
  int num_weight_rows;
  float* out;  // [num_rows, cols], rows out_stride apart; must not overlap x
  int64_t out_stride;
};

// Scores of queries against keys that lie anywhere.
struct ScoreArgs {
  const float* queries;  // [num_queries, dim], rows query_stride apart
  int64_t query_stride;
  int num_queries;
  const float* const* keys;  // num_keys pointers to [dim]
  int num_keys;
  int dim;
  float scale;
  float* scores;  // [num_queries, num_keys], rows score_stride apart
  int64_t score_stride;
};

// Adds weighted values: out[q] += sum over j of weights[q][j] * values[j], in the order of j, for j
// < limits[q].
struct ValueArgs {
  const float* weights;  // [num_queries, num_values], rows weight_stride apart
  int64_t weight_stride;
  int num_queries;
  const int32_t*
      limits;  // [num_queries]: values that each query may see, 0 <= limits[q] <= num_values
  const float* const* values;  // num_values pointers to [dim]
  int num_values;
  int dim;
  float* out;  // [num_queries, dim], rows out_stride apart
  int64_t out_stride;
};

// Rows of words (WordRowBytes() tells the layout), turned for products with other rows: once for
// all keys that queries meet.
struct WordPanelArgs {
  const std::byte* rows;  // words up to kLargestFactorWord, rows row_bytes apart
  int64_t row_bytes;
  int cols;      // of a row, of which the first `dim` are taken
  int num_rows;  // at most kMaxWordQueries
  int dim;
  float scale;       // that scores are multiplied with
  std::byte* panel;  // [WordPanelBytes(dim)], at a multiple of 64; each set has its own layout
};
inline constexpr int kMaxWordQueries = 64;
constexpr int NumWordPanels(int num_rows) {
  return (num_rows + kMaxWordQueries - 1) / kMaxWordQueries;
}
constexpr int64_t WordPanelBytes(int dim) {
  return kMaxWordQueries * (WordScalesOffset(dim) + int64_t{4} * NumCacheGroups(dim));
}

// Scores of turned queries with keys that are rows of words.
//   scores[q, j] = sum over groups g of (sum over i in g of query[q, i] * key[j, i]) *
//                                       (key_scale[j, g] * (query_scale[q, g] * scale))
// The inner sum is exact, the outer one is a chain of fused multiply-adds in ascending g, from
// zero.
struct WordScoreArgs {
  const std::byte* panel;  // of the queries
  int num_queries;
  const std::byte* keys;  // words up to kLargestWord, rows key_bytes apart
  int64_t key_bytes;
  int key_cols;  // columns of a row of keys, of which the first `dim` are taken
  int num_keys;  // at most kWordTile
  const std::byte* next_keys = nullptr;  // rows that are taken next, to be fetched; key_bytes apart
  int dim;
  float* scores;  // [num_queries, num_keys], rows score_stride apart; or [num_keys, num_queries]
  int64_t score_stride;
  bool has_key_rows = false;  // the latter
};

// Adds weighted values that are words. With g the group of column c, over all j < limits[q],
//   factor[q, j] = weights[q, j] / max weights[q] * scale[j, g] / max scale[g] * F, to even,
//   out[q, c] += (sum of factor[q, j] * value[j, c]) *
//                (max weights[q] * max scale[g] / F),   F = kLargestFactorWord.
// The sum is exact, the rest one fused multiply-add; the divisions are multiplications with the
// inverse, which is 0 for what is below 1e-30.
struct WordValueArgs {
  const float* weights;  // [num_queries, num_values], rows weight_stride apart; not negative
  int64_t weight_stride;
  int num_queries;          // at most kMaxWordQueries
  const int32_t* limits;    // [num_queries]: 0 <= limits[q] <= num_values
  const std::byte* values;  // words up to kLargestWord, rows value_bytes apart
  int64_t value_bytes;
  int value_cols;  // columns of a row of values, of which the first `dim` are taken
  int num_values;  // at most kWordTile
  int dim;
  float* out;  // [num_queries, dim], rows out_stride apart
  int64_t out_stride;
};

struct KernelTable {
  const char* name;

  // out[t, o] = sum over i of x[t, i] * w[o, i].
  // Order: eight partial sums, lane i % 8 over ascending i with fused multiply-add, then the fixed
  // tree of HorizontalSum: ((0+4)+(2+6)) + ((1+5)+(3+7)). With kF8Block128 each w is rounded to
  // float as code * scale first.
  void (*matmul[kNumQuantFormats])(const MatMulArgs& args);

  // By RoundedIdx.
  int64_t (*rounded_row_bytes[kNumRoundedFormats])(QuantFormat format, int group_size, int cols);
  void (*round_row[kNumRoundedFormats])(const RoundArgs& args);
  void (*rounded_matmul[kNumRoundedFormats])(const RoundedMatMulArgs& args);
  // By BlockedIdx: with weights that are turned.
  void (*turned_matmul[kNumBlockedFormats])(const RoundedMatMulArgs& args);

  // out[t, c] = sum over r of x[t, r] * w[r, c], in ascending r with fused multiply-add from zero:
  // the product with the transposed weight, read as it is stored.
  void (*weighted_sum[kNumQuantFormats])(const WeightedSumArgs& args);

  // out[i] = element i of stored row `row`; exact (for kF8Block128 code * scale rounded to float).
  // E4M3's NaN codes become NaN.
  void (*decode_row[kNumQuantFormats])(const WeightRows& weights, int row, float* out);

  // out = x / sqrt(mean(x^2) + eps) * gain. x and out may be the same. Specification, 3.2 (b).
  void (*rms_norm)(const float* x, const float* gain, int size, float eps, float* out);

  // out = (x - mean) / sqrt(variance + eps) * gain + bias. x and out may be the same.
  // Specification, 6.1.
  void (*layer_norm)(const float* x, const float* gain, const float* bias, int size, float eps,
                     float* out);

  // out = silu(gate) * up, silu(x) = x / (1 + e^-x). out may be gate or up. Finite for every finite
  // input.
  void (*silu_mul)(const float* gate, const float* up, int size, float* out);

  // out += x * factor, one fused multiply-add per element.
  void (*add_scaled)(const float* x, float factor, int size, float* out);

  // Rotates `size` values in place; cos and sin hold size / 2 values. Specification, 3.4 and 6.1.
  void (*rope_interleaved)(float* x, const float* cos, const float* sin,
                           int size);  // pairs (2i, 2i + 1)
  void (*rope_half_split)(float* x, const float* cos, const float* sin,
                          int size);  // pairs (i, i + size / 2)

  // scores[q, j] = scale * (queries[q] . keys[j]); the order of sums is that of matmul.
  void (*attention_scores)(const ScoreArgs& args);

  void (*attention_values)(const ValueArgs& args);

  // A row of the cache from floats. kQ8: code = x * (127 / max |x|) rounded to even; a group below
  // 1e-30 is zero; NaN and infinity make the scale so. kQ16: round_words with kLargestWord.
  void (*store_cache_row[kNumCacheTypes])(const float* x, int cols, std::byte* row);
  // x[0 .. cols - first) = columns [first, cols) of a row of the cache.
  // REQUIRES: 0 <= first <= cols.
  void (*load_cache_row[kNumCacheTypes])(const std::byte* row, int cols, int first, float* x);

  // A row of words from floats. In each group of columns
  //   scale = max |x| / largest,   word = x * (largest / max |x|) rounded to even;
  // a group below 1e-30 is zero; NaN and infinity make the scale so.
  void (*round_words)(const float* x, int cols, int largest, std::byte* row);
  // A row of words from a row of the cache: of kQ16 the row itself; of kQ8 its codes and scales; of
  // kF32 rounded with kLargestWord; of kBF16 with powers of two as scales, of which the one above
  // the group's largest magnitude is 4096, so that values of at least a sixteenth of it are exact.
  void (*load_cache_words[kNumCacheTypes])(const std::byte* row, int cols, std::byte* word_row);

  void (*turn_words)(const WordPanelArgs& args);
  void (*word_scores)(const WordScoreArgs& args);
  void (*word_values)(const WordValueArgs& args);

  // The largest of x[0 .. size). REQUIRES: size >= 1. NaN anywhere gives NaN.
  float (*max)(const float* x, int size);

  // x[i] = exp(x[i] - shift); returns the sum of the results, in the order of matmul's sums.
  // exp is within 2 units in the last place, exp(-inf) = 0, exp(0) = 1, NaN stays NaN.
  float (*exp_and_sum)(float* x, int size, float shift);

  // x *= factor.
  void (*scale)(float* x, float factor, int size);

  // For measuring what the processor could do with this set: `rounds` times kProbeOps operations (a
  // multiplication and an addition count as two) on registers alone. The result only keeps the work
  // from being optimised away.
  float (*multiply_add_probe)(int64_t rounds);

  // The same for the products of this set with 4-bit weights: `rounds` times integer_probe_ops
  // operations.
  int32_t (*integer_probe)(int64_t rounds);
  int integer_probe_ops;  // operations of one round
};

inline constexpr int kProbeOps = 12 * 8 * 2;

}  // namespace hadal
