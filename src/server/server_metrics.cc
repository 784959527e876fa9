#include "server/server_metrics.h"

#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace hadal {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

const prometheus::Histogram::BucketBoundaries kDurationBuckets = {
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250};

class FamilyList {
 public:
  void Counter(const std::string& name, const std::string& help, double value,
               std::vector<ClientMetric::Label> labels = {}) {
    ClientMetric metric;
    metric.counter.value = value;
    Add(name, help, MetricType::Counter, std::move(metric), std::move(labels));
  }
  void Gauge(const std::string& name, const std::string& help, double value) {
    ClientMetric metric;
    metric.gauge.value = value;
    Add(name, help, MetricType::Gauge, std::move(metric), {});
  }
  std::vector<MetricFamily> Take() { return std::move(families_); }

 private:
  // Metrics of one name that follow each other are one family.
  void Add(const std::string& name, const std::string& help, MetricType type, ClientMetric metric,
           std::vector<ClientMetric::Label> labels) {
    metric.label = std::move(labels);
    if (families_.empty() || families_.back().name != name) {
      MetricFamily& family = families_.emplace_back();
      family.name = name;
      family.help = help;
      family.type = type;
    }
    families_.back().metric.push_back(std::move(metric));
  }
  std::vector<MetricFamily> families_;
};

void AddEngine(const MetricsSnapshot& engine, FamilyList* list) {
  const auto seconds = [](int64_t us) { return static_cast<double>(us) * 1e-6; };
  const auto count = [](int64_t number) { return static_cast<double>(number); };
  list->Counter("hadal_sequences_submitted_total", "Answers that were begun",
                count(engine.num_submitted));
  const std::string ended = "hadal_sequences_ended_total", ended_help = "Answers by their end";
  list->Counter(ended, ended_help, count(engine.num_stopped), {{"reason", "stop"}});
  list->Counter(ended, ended_help, count(engine.num_cut), {{"reason", "length"}});
  list->Counter(ended, ended_help, count(engine.num_failed), {{"reason", "error"}});
  list->Counter(ended, ended_help, count(engine.num_cancelled), {{"reason", "cancelled"}});
  list->Counter("hadal_prompt_tokens_total", "Tokens of prompts", count(engine.num_prompt_tokens));
  list->Counter("hadal_cached_prompt_tokens_total", "Of them, found in the prefix cache",
                count(engine.num_cached_tokens));
  list->Counter("hadal_generated_tokens_total", "Tokens of answers",
                count(engine.num_generated_tokens));
  list->Counter("hadal_accepted_draft_tokens_total", "Guessed tokens that came true",
                count(engine.num_accepted_drafts));
  list->Counter("hadal_rejected_draft_tokens_total", "Guessed tokens that did not",
                count(engine.num_rejected_drafts));
  list->Counter("hadal_steps_total", "Steps of the engine", count(engine.num_steps));
  list->Counter("hadal_step_seconds_total", "Time spent in steps", seconds(engine.step_us));
  list->Counter("hadal_execute_seconds_total", "Of it, in the model", seconds(engine.execute_us));
  list->Counter("hadal_preemptions_total", "Sequences that had to give up their place",
                count(engine.num_preemptions));
  list->Gauge("hadal_sequences_running", "Sequences that are computed", engine.num_running);
  list->Gauge("hadal_sequences_waiting", "Sequences that wait", engine.num_waiting);
}

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
  if (engine != nullptr) AddEngine(*engine, &list);
  std::vector<MetricFamily> families = list.Take();
  for (MetricFamily& family : state_->registry.Collect()) families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace hadal
