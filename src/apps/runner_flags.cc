#include "apps/runner_flags.h"

#include <map>
#include <memory>

#include <fmt/format.h>

#include "apps/model_path.h"
#include "apps/name_flag.h"
#include "base/json.h"
#include "model/weight_formats.h"
#include "sys/mapped_file.h"

namespace hadal {
namespace {

constexpr int64_t kMaxTokensFileBytes = int64_t{1} << 30;

const std::map<std::string, AttentionForm> kForms = {{"auto", AttentionForm::kAuto},
                                                     {"absorbed", AttentionForm::kAbsorbed},
                                                     {"expanded", AttentionForm::kExpanded}};

const std::map<std::string, CacheFormat> kCacheFormats = {{"auto", CacheFormat::kAuto},
                                                          {"f32", CacheFormat::kF32},
                                                          {"bf16", CacheFormat::kBF16},
                                                          {"q8", CacheFormat::kQ8},
                                                          {"q16", CacheFormat::kQ16}};
const std::map<std::string, WeightMemory> kWeightMemories = {{"auto", WeightMemory::kAuto},
                                                             {"mapped", WeightMemory::kMapped},
                                                             {"copied", WeightMemory::kCopied}};
const std::map<std::string, ActivationChoice> kActivations = {
    {"auto", ActivationChoice::kAuto},
    {"int8", ActivationChoice::kInt8},
    {"float32", ActivationChoice::kFloat32}};

const std::map<std::string, QuantFormat> kGroupedFormats = {{"int8", QuantFormat::kInt8Group},
                                                            {"int4", QuantFormat::kInt4Group}};

}  // namespace

void AddModelArgument(CLI::App* command, std::string* path) {
  *path = BundledModelPath();
  command
      ->add_option("model", *path,
                   "Model folder or file, or the name of a pulled model (default: the bundled one)")
      ->transform([](const std::string& name) { return LocateModel(name); });
}

void AddRunnerFlags(CLI::App* command, RunnerOptions* options) {
  command->add_option("--threads", options->num_threads, "Threads (0: all usable cores)")
      ->check(CLI::Range(0, 1024));
  command->add_option("--kernels", options->kernels,
                      "Kernel set (default: the best usable; see `hadal doctor`)");
  command
      ->add_option("--form", options->attention_form,
                   "Form of attention: absorbed, expanded, or auto (prompts expanded, generated "
                   "tokens absorbed; a server with --max-step-ms: absorbed)")
      ->transform(OneOf(kForms))
      ->type_name("NAME");
  command
      ->add_option("--weights", options->weight_memory,
                   "Weights mapped from their files, copied into huge pages, or auto (copied when "
                   "they take less than half of the free memory)")
      ->transform(OneOf(kWeightMemories))
      ->type_name("NAME");
  command
      ->add_option(
          "--cache-type", options->cache_format,
          "Rows of the latent cache: f32, bf16, q16 and q8 (words and bytes with scales), or "
          "auto (q16 where the inputs of weights are rounded, see --activations, else f32)")
      ->transform(OneOf(kCacheFormats))
      ->type_name("NAME");
  command
      ->add_option("--activations", options->activations,
                   "Inputs of INT8, INT4 and GGUF's weights: int8 (fast), float32, or auto (int8,\n"
                   "but float32 in GGUF and other exports of less than 64 MB)")
      ->transform(OneOf(kActivations))
      ->type_name("NAME");
  // The two flags come in any order; 0: the group size of the format.
  auto group_size = std::make_shared<int>(0);
  command
      ->add_option_function<QuantFormat>(
          "--format",
          [options, group_size](const QuantFormat& format) {
            const int size = *group_size > 0 ? *group_size : DefaultGroupSize(format);
            options->weight_format = GroupShape{format, size, false};
          },
          "Round wide weights at load: int8 or int4 (quickly; `hadal quantize` does it better)")
      ->transform(OneOf(kGroupedFormats))
      ->type_name("NAME");
  command
      ->add_option_function<int>(
          "--group-size",
          [options, group_size](const int& size) {
            *group_size = size;
            if (options->weight_format) options->weight_format->group_size = size;
          },
          "Columns that share a scale, with --format: 32, 64 (default for int8)\n"
          "or 128 (for int4)")
      ->check(CLI::IsMember({32, 64, 128}));
  command
      ->add_option("--chunk", options->max_step_tokens,
                   "Tokens of a prompt that are read in one step")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
}

Result<std::vector<TokenId>> ReadTokensFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxTokensFileBytes));
  ASSIGN_OR_RETURN(const Json list, ParseJson(text, path));
  if (!list.is_array() || list.empty()) {
    return Status::Corrupt(fmt::format("{}: expected a list of at least one token id, found {}",
                                       path, list.is_array() ? "an empty list" : "something else"));
  }
  std::vector<TokenId> tokens;
  tokens.reserve(list.size());
  for (const Json& entry : list) {
    if (!entry.is_number_integer() || entry < 0 || entry > INT32_MAX) {
      return Status::Corrupt(fmt::format("{}: entry {}: expected a token id, found {}", path,
                                         tokens.size(), DumpJson(entry)));
    }
    tokens.push_back({entry.get<int32_t>()});
  }
  return tokens;
}

}  // namespace hadal
