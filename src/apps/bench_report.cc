#include "apps/bench_report.h"

#include <cmath>

#include <fmt/format.h>

#include "apps/units.h"
#include "base/quote.h"

namespace hadal {
namespace {

Json LimitsAsJson(const MachineLimits& limits) {
  return {{"read_gb_s", limits.read_bytes_per_s / kGiga},
          {"rates",
           {{"float32_gop_s", limits.multiply_add_ops_per_s / kGiga},
            {"integer_gop_s", limits.integer_ops_per_s / kGiga}}}};
}

bool IsStep(const BenchResult& result) {
  return result.what == "prefill" || result.what == "decode";
}

Json ResultAsJson(const BenchResult& result) {
  Json json = {{"what", result.what},
               {"batch", result.batch},
               {"depth", result.depth},
               {"tokens", result.tokens},
               {"tokens_per_s", result.tokens_per_s},
               {"median_s", result.median_s},
               {"runs", result.runs},
               {"bytes", result.bytes},
               {"ops", result.ops},
               {"bound_s", result.bound_s},
               {"bound_by", result.bound_by},
               {"share_of_bound", result.share_of_bound}};
  if (IsStep(result)) json["limits"] = LimitsAsJson(result.limits);
  if (!result.operations.empty()) {
    Json operations = Json::object();
    for (const auto& [name, seconds] : result.operations) operations[name] = seconds;
    json["operations_s"] = operations;
  }
  return json;
}

}  // namespace

Json BenchAsJson(const BenchReport& report) {
  const BenchModel& model = report.model;
  Json machine = LimitsAsJson(report.limits);
  machine["cpu"] = report.cpu;
  machine["threads"] = model.num_threads;
  machine["kernels"] = model.kernels;
  Json results = Json::array();
  for (const BenchResult& result : report.results) results.push_back(ResultAsJson(result));
  return {{"machine", machine},
          {"model",
           {{"path", model.path},
            {"model_type", model.model_type},
            {"parameters_total", model.parameters_total},
            {"parameters_active", model.parameters_active},
            {"weight_bytes", model.weight_bytes},
            {"bits_per_weight", model.bits_per_weight},
            {"cache_bytes_per_token", model.cache_bytes_per_token},
            {"cache_saving", model.cache_saving}}},
          {"results", results}};
}

std::string BenchTableHead(const BenchModel& model) {
  return fmt::format(
      "{}: {}, {} parameters ({} active), weights {} ({:.2f} bits each), cache {} a token "
      "({:.1f} times less than heads)\nkernels {}, {} threads\n\n{:<8} {:>5} {:>6} {:>6} {:>12} "
      "{:>10}  {:>10}  {}\n",
      model.path, model.model_type, FormatCount(model.parameters_total),
      FormatCount(model.parameters_active), FormatBytes(model.weight_bytes), model.bits_per_weight,
      FormatBytes(model.cache_bytes_per_token), model.cache_saving, model.kernels,
      model.num_threads, "what", "batch", "depth", "tokens", "tokens/s", "median", "of bound",
      "bound by");
}

std::string BenchTableRow(const BenchResult& result) {
  if (result.what == "memory")
    return fmt::format("memory   peak {}\n", FormatBytes(static_cast<int64_t>(result.bytes)));
  if (result.what == "load") return fmt::format("load     {:.2f} s\n", result.median_s);
  const double gigabytes = result.bytes / result.median_s / kGiga;
  const double gigaops = result.ops / result.median_s / kGiga;
  const std::string bound = result.bound_by == "reading"
                                ? fmt::format("reading: {:.1f} of {:.1f} GB/s", gigabytes,
                                              result.limits.read_bytes_per_s / kGiga)
                                : fmt::format("arithmetic: {:.0f} of {:.0f} Gop/s", gigaops,
                                              result.ops / result.bound_s / kGiga);
  std::string row =
      fmt::format("{:<8} {:>5} {:>6} {:>6} {:>12.2f} {:>8.1f}ms  {:>9.0f}%  {}\n", result.what,
                  result.batch, result.depth, result.tokens, result.tokens_per_s,
                  1e3 * result.median_s, 100 * result.share_of_bound, bound);
  double sum = 0;
  for (const auto& [name, seconds] : result.operations) {
    row += fmt::format("    {:<28} {:>9.3f} ms {:>5.1f}%\n", name, 1e3 * seconds,
                       100 * seconds / result.median_s);
    sum += seconds;
  }
  if (sum > 0) {
    row += fmt::format("    {:<28} {:>9.3f} ms {:>5.1f}%\n", "all operations", 1e3 * sum,
                       100 * sum / result.median_s);
  }
  return row;
}

std::string BenchAsCsv(const BenchReport& report) {
  std::string csv =
      "what,batch,depth,tokens,tokens_per_s,median_s,runs,bytes,ops,bound_s,share_of_bound,"
      "read_gb_s,float32_gop_s,integer_gop_s\n";
  for (const BenchResult& r : report.results) {
    csv += fmt::format(
        "{},{},{},{},{:.6g},{:.6g},{},{:.6g},{:.6g},{:.6g},{:.4f},{:.4g},{:.4g},"
        "{:.4g}\n",
        r.what, r.batch, r.depth, r.tokens, r.tokens_per_s, r.median_s, r.runs, r.bytes, r.ops,
        r.bound_s, r.share_of_bound, r.limits.read_bytes_per_s / kGiga,
        r.limits.multiply_add_ops_per_s / kGiga, r.limits.integer_ops_per_s / kGiga);
  }
  return csv;
}

Status CheckEarlierBench(const Json& earlier, const std::string& what) {
  if (earlier.is_object() && earlier.contains("results") && earlier["results"].is_array()) {
    return Status::Ok();
  }
  return Status::Corrupt(
      fmt::format("{}: expected the JSON of an earlier run with its results, found none", what));
}

Result<std::string> CompareBench(const BenchReport& report, const Json& earlier,
                                 const std::string& what) {
  RETURN_IF_ERROR(CheckEarlierBench(earlier, what));
  std::string text =
      fmt::format("\nagainst {}\n{:<8} {:>5} {:>6} {:>6} {:>10} {:>10} {:>7} {:>9}\n", what, "what",
                  "batch", "depth", "tokens", "then", "now", "ratio", "of bound");
  for (const Json& then : earlier["results"]) {
    ASSIGN_OR_RETURN(const std::string name, ReadString(then, "what", what));
    for (const BenchResult& now : report.results) {
      if (!IsStep(now) || now.what != name) continue;
      ASSIGN_OR_RETURN(const int64_t batch, ReadInt(then, "batch", 0, INT32_MAX, what));
      ASSIGN_OR_RETURN(const int64_t depth, ReadInt(then, "depth", 0, INT32_MAX, what));
      ASSIGN_OR_RETURN(const int64_t tokens, ReadInt(then, "tokens", 0, INT32_MAX, what));
      ASSIGN_OR_RETURN(const double speed, ReadNumber(then, "tokens_per_s", what));
      ASSIGN_OR_RETURN(const double share, ReadNumber(then, "share_of_bound", what));
      if (batch != now.batch || depth != now.depth || tokens != now.tokens) continue;
      text +=
          fmt::format("{:<8} {:>5} {:>6} {:>6} {:>10.2f} {:>10.2f} {:>7.3f} {:>4.0f}%{:>4.0f}%\n",
                      now.what, now.batch, now.depth, now.tokens, speed, now.tokens_per_s,
                      now.tokens_per_s / speed, 100 * share, 100 * now.share_of_bound);
    }
  }
  return text;
}

}  // namespace hadal
