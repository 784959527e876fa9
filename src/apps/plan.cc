// hadal plan: which format of a model fits this machine, and how fast it would be. Also before a
// download.
#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/hub_flags.h"
#include "apps/model_path.h"
#include "apps/plan_report.h"
#include "apps/released_models.h"
#include "apps/units.h"
#include "base/json.h"
#include "base/quote.h"
#include "convert/model_shapes.h"
#include "convert/synthesize.h"
#include "formats/model_folder.h"
#include "hub/file_download.h"
#include "kernels/dispatch.h"
#include "model/imagined_weights.h"
#include "model/parameter_count.h"
#include "sys/machine.h"

namespace hadal {
namespace fs = std::filesystem;

namespace {

constexpr int64_t kMaxConfigBytes = 1 << 20;
constexpr int kDefaultContext = 8192;
constexpr int kMeasurements = 3;

struct PlanFlags {
  std::string name;
  uint64_t memory_bytes = 0;  // 0: what is free now
  int context = 0, batch = 1, num_threads = 0;
  double read_gb_s = 0, integer_gop_s = 0, float_gop_s = 0;  // 0: measured here
  bool has_json = false;
};

// A model that is here, with what its weights point into.
struct OpenModel {
  std::unique_ptr<Checkpoint> checkpoint;
  ModelWeights weights;
};

// Exports of other programs (GPTQ, AWQ, compressed-tensors) are planned for as hadal's own of about
// the same width.
QuantFormat FormatOfConfig(const Json& config) {
  if (!HasValue(config, "quantization_config")) return QuantFormat::kBF16;
  const std::string text = DumpJson(config["quantization_config"]);
  const auto has = [&text](const char* piece) { return text.find(piece) != text.npos; };
  if (has(R"("quant_method":"fp8")")) return QuantFormat::kF8Block128;
  const bool has_eight = has(R"("int8")") || (has(R"(bits":8)") && !has(R"(bits":4)"));
  return has_eight ? QuantFormat::kInt8Group : QuantFormat::kInt4Group;
}

// Bytes of a checkpoint of this config in a published format, MTP's layer included.
int64_t PublishedBytes(const ModelConfig& config, QuantFormat format) {
  const ParameterCount count = CountParameters(config);
  if (IsGrouped(format)) return WeightBytes(ImagineWeights(config, format));
  return (count.total + count.mtp) * (format == QuantFormat::kF8Block128 ? 1 : 2);
}

// Of a released model, or of those that have a shape.
QuantFormat PublishedFormat(const ReleasedModel* released, const std::string& shape,
                            QuantFormat otherwise) {
  if (released != nullptr) return released->format;
  for (const ReleasedModel& model : ReleasedModels()) {
    if (model.shape == shape) return model.format;
  }
  return otherwise;
}

Status UseConfig(const Json& json, const std::string& what, PlanRequest* request) {
  ASSIGN_OR_RETURN(request->config, ModelConfig::Parse(json, what));
  request->published = FormatOfConfig(json);
  request->published_bytes = PublishedBytes(request->config, request->published);
  return Status::Ok();
}

// A folder or file on this machine. Weights that cannot be opened are imagined.
Status UsePath(const std::string& path, PlanRequest* request, OpenModel* open) {
  ASSIGN_OR_RETURN(const ModelFolder folder, ReadModelFolder(path));
  if (folder.config.is_null()) {
    return Status::NotFound(fmt::format("{}: expected a config.json, found none", folder.folder));
  }
  RETURN_IF_ERROR(UseConfig(folder.config, folder.folder + "/config.json", request));
  request->path = path;
  Result<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::Open(path);
  if (!checkpoint.ok())
    return request->config.has_grouped_weights ? checkpoint.status() : Status::Ok();
  open->checkpoint = std::move(checkpoint).value();
  ASSIGN_OR_RETURN(open->weights, BindWeights(*open->checkpoint, request->config));
  request->weights = &open->weights;
  const LayerWeights& last = open->weights.layers.back();
  request->published = last.feed_forward.expert_gate.empty()
                           ? last.feed_forward.gate.format
                           : last.feed_forward.expert_gate[0].format;
  request->published_bytes = WeightBytes(open->weights);
  return Status::Ok();
}

// The config of a model that is on a hub only.
Status UseHub(const RepoName& repo, PlanRequest* request) {
  ASSIGN_OR_RETURN(const HttpSettings settings, HubSettings());
  HttpClient client(settings, nullptr);
  const std::string url = fmt::format("{}/{}/resolve/{}/config.json", settings.endpoint,
                                      PercentEncoded(repo.id()), PercentEncoded(repo.revision));
  ASSIGN_OR_RETURN(const std::string text,
                   FetchText(url, kMaxConfigBytes, {.max_failures = 3}, nullptr, &client, nullptr));
  ASSIGN_OR_RETURN(const Json json, ParseJson(text, repo.full() + "/config.json"));
  request->repo = repo.full();
  return UseConfig(json, repo.full() + "/config.json", request);
}

// In this order: a place on this machine or a pulled model, a shape, a released model, a hub.
Status FindModel(const std::string& name, PlanRequest* request, OpenModel* open) {
  request->name = name;
  const std::string path = LocateModel(name);
  std::error_code error;
  if (fs::exists(path, error)) return UsePath(path, request, open);
  const ReleasedModel* released = FindReleasedModel(name);
  const Result<Json> shape = ReadModelShape(released != nullptr ? released->shape : name);
  if (shape.ok()) {
    RETURN_IF_ERROR(UseConfig(*shape, name, request));
    if (released != nullptr) request->name = request->repo = released->repo;
    request->published = PublishedFormat(released, name, request->published);
    request->published_bytes = PublishedBytes(request->config, request->published);
    return Status::Ok();
  }
  const Result<RepoName> repo = ParseRepoName(name);
  if (repo.ok()) return UseHub(*repo, request);
  return Status::NotFound(
      fmt::format("{}: expected a model folder, a released model such as V3.1, ORG/NAME, or one of "
                  "the shapes {}; found nothing",
                  Quoted(name), fmt::join(ModelShapeNames(), ", ")));
}

// Other programs share the machine: the best of what it shows.
MachineLimits MeasureLimits(const KernelTable& kernels, int num_threads) {
  LimitProbe probe(kernels, num_threads);
  MachineLimits best{.kernels = kernels.name};
  for (int i = 0; i < kMeasurements; ++i) {
    const MachineLimits now = probe.Measure();
    best.read_bytes_per_s = std::max(best.read_bytes_per_s, now.read_bytes_per_s);
    best.integer_ops_per_s = std::max(best.integer_ops_per_s, now.integer_ops_per_s);
    best.multiply_add_ops_per_s = std::max(best.multiply_add_ops_per_s, now.multiply_add_ops_per_s);
  }
  return best;
}

// Of a machine that is not this one, as far as they are told.
void UseGivenLimits(const PlanFlags& flags, PlanReport* report) {
  const auto use = [report](double given, const char* name, double* limit) {
    if (given == 0) return;
    *limit = given * kGiga;
    report->given_limits.emplace_back(name);
  };
  use(flags.read_gb_s, "read_gb_s", &report->limits.read_bytes_per_s);
  use(flags.integer_gop_s, "integer_gop_s", &report->limits.integer_ops_per_s);
  use(flags.float_gop_s, "float32_gop_s", &report->limits.multiply_add_ops_per_s);
}

// Free where pulled models lie, or will.
int64_t FreeDiskBytes() {
  std::error_code error;
  fs::path folder = fs::absolute(PulledModels().root(), error);
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  const fs::space_info space = fs::space(folder, error);
  return error ? 0 : static_cast<int64_t>(space.available);
}

Status RunPlan(const PlanFlags& flags) {
  PlanReport report;
  PlanRequest& request = report.request;
  OpenModel open;
  RETURN_IF_ERROR(FindModel(flags.name.empty() ? BundledModelPath() : flags.name, &request, &open));
  request.memory_bytes =
      flags.memory_bytes > 0 ? static_cast<int64_t>(flags.memory_bytes) : AvailableMemoryBytes();
  request.disk_bytes = FreeDiskBytes();
  request.context = std::min(flags.context > 0 ? flags.context : kDefaultContext,
                             request.config.max_position_embeddings);
  request.batch = flags.batch;
  const ParameterCount count = CountParameters(request.config);
  report.parameters_total = count.total;
  report.parameters_active = count.active;
  report.cpu = ProcessorName();
  report.kernels = BestKernels().name;
  report.num_threads = flags.num_threads > 0 ? flags.num_threads : NumUsableCores();
  report.limits = MeasureLimits(BestKernels(), report.num_threads);
  UseGivenLimits(flags, &report);
  report.formats = PlanFormats(request, report.limits);
  for (size_t i = 0; i < report.formats.size() && report.best_idx < 0; ++i) {
    if (report.formats[i].fits) report.best_idx = static_cast<int>(i);
  }
  if (report.best_idx >= 0) {
    report.commands = PlanCommands(request, report.formats[static_cast<size_t>(report.best_idx)]);
  }
  fmt::print("{}", flags.has_json ? DumpJson(PlanAsJson(report)) + "\n" : PlanAsText(report));
  return Status::Ok();
}

}  // namespace

void AddPlanCommand(CLI::App* app, CommandBody* body) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* command = app->add_subcommand(
      "plan",
      "Tell which format of a model fits this machine and how fast it would be, from measured\n"
      "limits of the machine: also before a download.");
  command->add_option("MODEL", flags->name,
                      "Folder, pulled model, released model (V3.1, R1-0528, V2-Lite-Chat, ...),\n"
                      "ORG/NAME on the hub, or shape: v2-lite, v2, v3, v3.2");
  command
      ->add_option("--memory", flags->memory_bytes,
                   "Memory it may take, such as 24GB (default: what is free now)")
      ->transform(CLI::AsSizeValue(true));
  command->add_option("--context", flags->context, "Tokens of a conversation (default: 8192)")
      ->check(CLI::Range(1, 1 << 24));
  command->add_option("--batch", flags->batch, "Conversations at a time")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--threads", flags->num_threads, "Threads (0: all usable cores)")
      ->check(CLI::Range(0, 1024));
  const auto add_limit = [command](const char* name, double* limit, const char* what) {
    command->add_option(name, *limit, what)->check(CLI::Range(0.1, 1e9));
  };
  add_limit("--read-gb-s", &flags->read_gb_s,
            "Plan for a machine that reads so many GB a second (default: measured here)");
  add_limit("--integer-gop-s", &flags->integer_gop_s,
            "The same for 10^9 operations a second on bytes (see `hadal bench`)");
  add_limit("--float-gop-s", &flags->float_gop_s, "The same for float32");
  command->add_flag("--json", flags->has_json, "Print one JSON object");
  command->callback([flags, body] { *body = [flags] { return RunPlan(*flags); }; });
}

}  // namespace hadal
