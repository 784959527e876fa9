#include "apps/speed_forecast.h"

#include <algorithm>

#include "model/cache_size.h"

namespace hadal {
namespace {

// Shares of the limits that steps reach. Reading, products and attention follow each other within a
// layer, so their times add up. Attention's are of multiply_add_ops_per_s, at depths to 8,192: of
// caches of floats, and of those that attention multiplies as words, in both forms; words are
// multiplied faster than floats.
struct LimitShares {
  double reading;         // of read_bytes_per_s
  double byte_products;   // of integer_ops_per_s
  double float_products;  // of multiply_add_ops_per_s; BF16 0.74, FP8 0.63
  double float_attention;
  double absorbed_word_attention, expanded_word_attention;
};

// Two cores of Zen 3: the first two fitted to the figures of INT4 in docs/performance.md, the
// others from `bench --profile` (docs/models.md).
constexpr LimitShares kAvx2Shares = {.reading = 0.97,
                                     .byte_products = 0.60,
                                     .float_products = 0.65,
                                     .float_attention = 0.50,
                                     .absorbed_word_attention = 0.85,
                                     .expanded_word_attention = 0.60};
// Two cores of Zen 5, in the same way. Floats are multiplied by AVX2's kernels.
constexpr LimitShares kAvx512Shares = {.reading = 0.82,
                                       .byte_products = 0.53,
                                       .float_products = 0.65,
                                       .float_attention = 0.50,
                                       .absorbed_word_attention = 2.6,
                                       .expanded_word_attention = 2.4};

const LimitShares& SharesOf(std::string_view kernels) {
  return kernels == "avx512" ? kAvx512Shares : kAvx2Shares;
}

struct StepTime {
  double reading = 0, arithmetic = 0, attention = 0;
  double sum() const { return reading + arithmetic + attention; }
  void Add(const StepTime& other) {
    reading += other.reading;
    arithmetic += other.arithmetic;
    attention += other.attention;
  }
};

double AttentionShare(const LimitShares& shares, CacheType cache_type, bool is_absorbed) {
  if (cache_type == CacheType::kF32) return shares.float_attention;
  return is_absorbed ? shares.absorbed_word_attention : shares.expanded_word_attention;
}

StepTime TimeOfStep(const ForecastModel& model, const MachineLimits& limits,
                    const StepShape& shape) {
  const LimitShares& shares = SharesOf(limits.kernels);
  const StepCost cost = CostOfStep(model.config, model.weights, shape);
  const double product_rate = model.is_grouped
                                  ? shares.byte_products * limits.integer_ops_per_s
                                  : shares.float_products * limits.multiply_add_ops_per_s;
  const double attention_rate =
      AttentionShare(shares, model.cache_type, shape.is_absorbed) * limits.multiply_add_ops_per_s;
  return {.reading = cost.bytes() / (shares.reading * limits.read_bytes_per_s),
          .arithmetic = static_cast<double>(cost.weight_ops) / product_rate,
          .attention = static_cast<double>(cost.attention_ops) / attention_rate};
}

void Judge(const StepTime& time, SpeedForecast* forecast) {
  forecast->seconds = time.sum();
  forecast->tokens_per_s = forecast->batch * forecast->tokens / time.sum();
  const double most = std::max({time.reading, time.arithmetic, time.attention});
  forecast->bound_by = most == time.reading      ? "reading"
                       : most == time.arithmetic ? "arithmetic"
                                                 : "attention";
}

int64_t CacheRowBytesOf(const ForecastModel& model) {
  return CacheBytesPerToken(model.config, 1, model.cache_type);
}

}  // namespace

SpeedForecast ForecastDecode(const ForecastModel& model, const MachineLimits& limits, int batch,
                             int depth) {
  SpeedForecast forecast{
      .what = "decode", .batch = batch, .depth = depth, .tokens = 1, .bound_by = {}};
  Judge(TimeOfStep(model, limits,
                   {.num_sequences = batch,
                    .tokens_per_sequence = 1,
                    .num_cached = depth,
                    .logit_rows = batch,
                    .is_absorbed = true,
                    .cache_row_bytes = CacheRowBytesOf(model)}),
        &forecast);
  return forecast;
}

SpeedForecast ForecastPrefill(const ForecastModel& model, const MachineLimits& limits, int tokens,
                              int depth, int chunk) {
  SpeedForecast forecast{
      .what = "prefill", .batch = 1, .depth = depth, .tokens = tokens, .bound_by = {}};
  StepTime time;
  for (int done = 0; done < tokens; done += chunk) {
    time.Add(TimeOfStep(model, limits,
                        {.num_sequences = 1,
                         .tokens_per_sequence = std::min(chunk, tokens - done),
                         .num_cached = depth + done,
                         .logit_rows = done + chunk >= tokens ? 1 : 0,
                         .is_absorbed = false,
                         .cache_row_bytes = CacheRowBytesOf(model)}));
  }
  Judge(time, &forecast);
  return forecast;
}

}  // namespace hadal
