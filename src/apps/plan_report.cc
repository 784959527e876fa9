#include "apps/plan_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "apps/units.h"
#include "base/json.h"
#include "model/cache_size.h"
#include "model/imagined_weights.h"
#include "runner/model_runner.h"

namespace hadal {
namespace {

constexpr int kChunk = kDefaultStepTokens;
constexpr int kShortPrompt = 512;
// Scratch of a step, tokenizer, the program: 0.5 GB beside weights and cache of V2-Lite.
constexpr int64_t kRuntimeBytes = 600'000'000;

const char* FormatName(QuantFormat format) {
  switch (format) {
    case QuantFormat::kF32:
      return "f32";
    case QuantFormat::kF16:
      return "f16";
    case QuantFormat::kF8Block128:
      return "fp8";
    case QuantFormat::kInt8Group:
      return "int8";
    case QuantFormat::kInt4Group:
      return "int4";
    default:
      return "bf16";
  }
}

FormatPlan PlanFormat(const PlanRequest& request, QuantFormat format, const MachineLimits& limits) {
  const ModelConfig& config = request.config;
  const bool is_here = request.weights != nullptr && format == request.published;
  const ModelWeights imagined = is_here ? ModelWeights() : ImagineWeights(config, format);
  const ModelWeights& weights = is_here ? *request.weights : imagined;
  const bool is_grouped = IsGrouped(format);
  const CacheType cache = is_grouped ? CacheType::kQ16 : CacheType::kF32;
  FormatPlan plan{.format = format, .name = FormatName(format), .forecasts = {}};
  plan.weight_bytes = WeightBytes(weights);
  plan.cache_bytes_per_token = CacheBytesPerToken(config, config.num_hidden_layers, cache);
  plan.cache_bytes = plan.cache_bytes_per_token * request.context * request.batch;
  plan.memory_bytes = plan.weight_bytes + plan.cache_bytes + kRuntimeBytes;
  plan.fits = plan.memory_bytes <= request.memory_bytes;
  const int64_t room = request.memory_bytes - plan.weight_bytes - kRuntimeBytes;
  plan.context_that_fits = std::clamp<int64_t>(room / (plan.cache_bytes_per_token * request.batch),
                                               0, config.max_position_embeddings);
  const ForecastModel model{config, weights, cache, is_grouped};
  const int prompt = std::min(kShortPrompt, request.context);
  plan.forecasts = {
      ForecastPrefill(model, limits, prompt, 0, kChunk),
      ForecastPrefill(model, limits, request.context, 0, kChunk),
      ForecastDecode(model, limits, request.batch, 0),
      ForecastDecode(model, limits, request.batch, request.context - 1),
  };
  return plan;
}

Json ForecastAsJson(const SpeedForecast& forecast) {
  return {{"what", forecast.what},        {"batch", forecast.batch},
          {"depth", forecast.depth},      {"tokens", forecast.tokens},
          {"median_s", forecast.seconds}, {"tokens_per_s", forecast.tokens_per_s},
          {"bound_by", forecast.bound_by}};
}

Json FormatAsJson(const FormatPlan& plan) {
  Json forecasts = Json::array();
  for (const SpeedForecast& forecast : plan.forecasts) {
    forecasts.push_back(ForecastAsJson(forecast));
  }
  return {{"format", plan.name},
          {"weight_bytes", plan.weight_bytes},
          {"cache_bytes_per_token", plan.cache_bytes_per_token},
          {"cache_bytes", plan.cache_bytes},
          {"memory_bytes", plan.memory_bytes},
          {"fits", plan.fits},
          {"context_that_fits", plan.context_that_fits},
          {"forecast", std::move(forecasts)}};
}

std::string SpeedText(const SpeedForecast& forecast) {
  const double speed = forecast.tokens_per_s;
  return fmt::format("{:.{}f} ({})", speed,
                     speed < 10    ? 2
                     : speed < 100 ? 1
                                   : 0,
                     forecast.bound_by);
}

std::string FormatRow(const FormatPlan& plan) {
  return fmt::format(
      "{:<6} {:>8} {:>8} {:>8}  {:<5} {:>8}  {:<19} {:<19} {:<19} {:<19}\n", plan.name,
      FormatBytes(plan.weight_bytes), FormatBytes(plan.cache_bytes), FormatBytes(plan.memory_bytes),
      plan.fits ? "yes" : "no", plan.context_that_fits, SpeedText(plan.forecasts[0]),
      SpeedText(plan.forecasts[1]), SpeedText(plan.forecasts[2]), SpeedText(plan.forecasts[3]));
}

}  // namespace

std::vector<FormatPlan> PlanFormats(const PlanRequest& request, const MachineLimits& limits) {
  std::vector<FormatPlan> plans;
  for (const QuantFormat format :
       {request.published, QuantFormat::kInt8Group, QuantFormat::kInt4Group}) {
    if (!plans.empty() && IsGrouped(request.published)) break;  // it is what it is
    plans.push_back(PlanFormat(request, format, limits));
  }
  return plans;
}

std::vector<std::string> PlanCommands(const PlanRequest& request, const FormatPlan& format) {
  if (request.path.empty() && request.repo.empty()) {
    const std::string folder = request.name + "-" + format.name;
    return {fmt::format("hadal synth {} --shape {} --format {}", folder, request.name, format.name),
            fmt::format("hadal bench {}", folder)};
  }
  std::vector<std::string> commands;
  std::string model = request.path.empty() ? request.repo : request.path;
  if (request.path.empty()) commands.push_back("hadal pull " + request.repo);
  if (format.format != request.published) {
    const std::string base = model.substr(model.rfind('/') + 1) + "-" + format.name;
    commands.push_back(fmt::format("hadal quantize {} {} --format {}", model, base, format.name));
    model = base;
  }
  commands.push_back(request.batch == 1
                         ? "hadal chat " + model
                         : fmt::format("hadal serve {} --max-sequences {} --cache-tokens {}", model,
                                       request.batch, int64_t{request.batch} * request.context));
  return commands;
}

std::string PlanAsText(const PlanReport& report) {
  const PlanRequest& request = report.request;
  std::string text = fmt::format(
      "{}: {} parameters ({} active), {} as {}\n{}, {} threads, kernels {}: reads {:.1f} GB/s, "
      "{:.0f} Gop/s of bytes, {:.0f} of float32{}\n{} of memory to use; {} of context, {} at a "
      "time\n\n",
      request.name, FormatCount(report.parameters_total), FormatCount(report.parameters_active),
      FormatBytes(request.published_bytes), FormatName(request.published), report.cpu,
      report.num_threads, report.kernels, report.limits.read_bytes_per_s / kGiga,
      report.limits.integer_ops_per_s / kGiga, report.limits.multiply_add_ops_per_s / kGiga,
      report.given_limits.empty()
          ? ""
          : fmt::format(" (given: {})", fmt::join(report.given_limits, ", ")),
      FormatBytes(request.memory_bytes), request.context, request.batch);
  const auto at = [&request](const char* what, int tokens) {
    return fmt::format("{} {}", what, std::min(tokens, request.context));
  };
  text +=
      fmt::format("{:<6} {:>8} {:>8} {:>8}  {:<5} {:>8}  {:<19} {:<19} {:<19} {:<19}\n", "format",
                  "weights", "cache", "memory", "fits", "context", at("prefill", kShortPrompt),
                  at("prefill", request.context), "decode", at("decode at", request.context));
  for (const FormatPlan& plan : report.formats) text += FormatRow(plan);
  text +=
      "Tokens per second, and what limits them. \"context\": tokens that the memory has room "
      "for.\n\n";
  if (report.best_idx < 0) {
    return text + fmt::format("No format fits into {}.\n", FormatBytes(request.memory_bytes));
  }
  const FormatPlan& best = report.formats[static_cast<size_t>(report.best_idx)];
  text += fmt::format("The widest format that fits is {}:\n", best.name);
  for (const std::string& command : report.commands) text += "  " + command + "\n";
  if (request.path.empty() && request.published_bytes > request.disk_bytes) {
    text += fmt::format("The download takes {}, the disk has {} free.\n",
                        FormatBytes(request.published_bytes), FormatBytes(request.disk_bytes));
  }
  return text;
}

Json PlanAsJson(const PlanReport& report) {
  const PlanRequest& request = report.request;
  Json formats = Json::array();
  for (const FormatPlan& plan : report.formats) formats.push_back(FormatAsJson(plan));
  Json json = {{"model", request.name},
               {"repo", request.repo.empty() ? Json() : Json(request.repo)},
               {"path", request.path.empty() ? Json() : Json(request.path)},
               {"parameters_total", report.parameters_total},
               {"parameters_active", report.parameters_active},
               {"published",
                {{"format", FormatName(request.published)}, {"bytes", request.published_bytes}}},
               {"machine",
                {{"cpu", report.cpu},
                 {"threads", report.num_threads},
                 {"kernels", report.kernels},
                 {"read_gb_s", report.limits.read_bytes_per_s / kGiga},
                 {"rates",
                  {{"float32_gop_s", report.limits.multiply_add_ops_per_s / kGiga},
                   {"integer_gop_s", report.limits.integer_ops_per_s / kGiga}}},
                 {"given", report.given_limits}}},
               {"memory_bytes", request.memory_bytes},
               {"disk_bytes", request.disk_bytes},
               {"context", request.context},
               {"batch", request.batch},
               {"formats", std::move(formats)},
               {"best", nullptr},
               {"commands", report.commands}};
  if (report.best_idx >= 0)
    json["best"] = report.formats[static_cast<size_t>(report.best_idx)].name;
  return json;
}

}  // namespace hadal
