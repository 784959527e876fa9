#include "server/server_metrics.h"

#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "engine/metrics_text.h"

namespace hadal {
namespace {

const prometheus::Histogram::BucketBoundaries kDurationBuckets = {
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250};

class FamilyList {
 public:
  void Gauge(const std::string& name, const std::string& help, double value) {
    prometheus::MetricFamily& family = families_.emplace_back();
    family.name = name;
    family.help = help;
    family.type = prometheus::MetricType::Gauge;
    family.metric.emplace_back().gauge.value = value;
  }
  std::vector<prometheus::MetricFamily> Take() { return std::move(families_); }

 private:
  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace

struct ServerMetrics::State {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests = prometheus::BuildCounter()
                                                          .Name("hadal_http_requests_total")
                                                          .Help("HTTP requests by route and status")
                                                          .Register(registry);
  prometheus::Family<prometheus::Histogram>& durations =
      prometheus::BuildHistogram()
          .Name("hadal_http_request_duration_seconds")
          .Help("From the head of a request to the last byte of its reply")
          .Register(registry);
  prometheus::Counter& abandoned = prometheus::BuildCounter()
                                       .Name("hadal_http_abandoned_total")
                                       .Help("Requests whose client left before the reply ended")
                                       .Register(registry)
                                       .Add({});
};

ServerMetrics::ServerMetrics() : state_(std::make_unique<State>()) {}
ServerMetrics::~ServerMetrics() = default;

void ServerMetrics::CountRequest(std::string_view route, const ExchangeEnd& end) {
  const std::string name(route);
  state_->requests.Add({{"route", name}, {"status", fmt::format("{}", end.status)}}).Increment();
  state_->durations.Add({{"route", name}}, kDurationBuckets)
      .Observe(static_cast<double>(end.duration_us) * 1e-6);
  if (end.was_abandoned) state_->abandoned.Increment();
}

std::string ServerMetrics::Text(const MetricsSnapshot* engine, int num_connections,
                                bool is_draining) const {
  FamilyList list;
  list.Gauge("hadal_http_connections", "Open connections", num_connections);
  list.Gauge("hadal_up", "1 when requests are taken", engine != nullptr && !is_draining ? 1 : 0);
  std::vector<prometheus::MetricFamily> families = list.Take();
  for (prometheus::MetricFamily& family : state_->registry.Collect())
    families.push_back(std::move(family));
  std::string text = prometheus::TextSerializer().Serialize(families);
  if (engine != nullptr) text += MetricsText(EngineMetrics(*engine));
  return text;
}

}  // namespace hadal
