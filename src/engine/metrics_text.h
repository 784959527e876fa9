// Metrics in the text format that Prometheus reads (version 0.0.4). A family is a name with its
// values; the server adds its own families to the engine's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/metrics.h"

namespace hadal {

// Histogram with its own memory, for families that outlive their source.
struct HistogramValue {
  std::vector<double> bounds;
  std::vector<int64_t> counts;  // per bucket, not cumulative; one more than bounds
  double sum = 0;

  HistogramValue() = default;
  HistogramValue(const HistogramView& view)  // NOLINT: implicit on purpose
      : bounds(view.bounds.begin(), view.bounds.end()),
        counts(view.counts.begin(), view.counts.end()),
        sum(view.sum) {}
};

struct MetricSample {
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;
  std::optional<HistogramValue> histogram;  // of a histogram; then `value` is not looked at
};

struct MetricFamily {
  enum class Type { kCounter, kGauge, kHistogram };
  std::string name, help;  // the name of a counter ends in _total
  Type type = Type::kCounter;
  std::vector<MetricSample> samples;
};

// The families of an engine: hadal_time_to_first_token_seconds and so on. docs/metrics.md
// lists them.
std::vector<MetricFamily> EngineMetrics(const MetricsSnapshot& values);

// The body of /metrics; its type is kMetricsContentType. Label values are escaped.
std::string MetricsText(std::span<const MetricFamily> families);

inline constexpr const char* kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace hadal
