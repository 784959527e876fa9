#include "apps/speed_forecast.h"

#include <algorithm>

#include "model/cache_size.h"

namespace hadal {
namespace {

// Shares of the limits that steps reach on two cores of Zen 3. Reading, products and attention
// follow each other within a layer, so their times add up. The first two are fitted to the figures
// of INT4 in docs/performance.md; the others stem from `bench --profile`, where they were set
// against the byte products of the same run (docs/models.md).
constexpr double kReadShare = 0.97;
constexpr double kByteProductShare = 0.60;   // of integer_ops_per_s
constexpr double kFloatProductShare = 0.65;  // of multiply_add_ops_per_s; BF16 0.74, FP8 0.63

// Of multiply_add_ops_per_s, at depths to 8,192: of caches of floats, and of those that attention
// multiplies as words, in both forms.
constexpr double kFloatAttentionShare = 0.50;
constexpr double kAbsorbedWordAttentionShare = 0.85;
constexpr double kExpandedWordAttentionShare = 0.60;

struct StepTime {
  double reading = 0, arithmetic = 0, attention = 0;
  double sum() const { return reading + arithmetic + attention; }
  void Add(const StepTime& other) {
    reading += other.reading;
    arithmetic += other.arithmetic;
    attention += other.attention;
  }
};

double AttentionShare(CacheType cache_type, bool is_absorbed) {
  if (cache_type == CacheType::kF32) return kFloatAttentionShare;
  return is_absorbed ? kAbsorbedWordAttentionShare : kExpandedWordAttentionShare;
}

StepTime TimeOfStep(const ForecastModel& model, const MachineLimits& limits,
                    const StepShape& shape) {
  const StepCost cost = CostOfStep(model.config, model.weights, shape);
  const double product_rate = model.is_grouped ? kByteProductShare * limits.integer_ops_per_s
                                               : kFloatProductShare * limits.multiply_add_ops_per_s;
  return {.reading = cost.bytes() / (kReadShare * limits.read_bytes_per_s),
          .arithmetic = static_cast<double>(cost.weight_ops) / product_rate,
          .attention = static_cast<double>(cost.attention_ops) /
                       (AttentionShare(model.cache_type, shape.is_absorbed) *
                        limits.multiply_add_ops_per_s)};
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
