// hadal synth: a checkpoint of a true shape with random weights, to measure with.
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/name_flag.h"
#include "apps/output_folder.h"
#include "apps/progress.h"
#include "apps/units.h"
#include "base/json.h"
#include "convert/synthesize.h"
#include "model/weight_formats.h"

namespace hadal {
namespace {

struct SynthFlags {
  std::string folder;
  SynthOptions options{.group_size = 0};  // 0: of the format
  bool force = false, no_mtp = false, json = false;
};

const std::map<std::string, QuantFormat> kFormats = {{"bf16", QuantFormat::kBF16},
                                                     {"fp8", QuantFormat::kF8Block128},
                                                     {"int8", QuantFormat::kInt8Group},
                                                     {"int4", QuantFormat::kInt4Group}};

Status RunSynth(const SynthFlags& flags) {
  const auto start = std::chrono::steady_clock::now();
  SynthOptions options = flags.options;
  options.has_mtp = !flags.no_mtp;
  if (options.group_size == 0) options.group_size = DefaultGroupSize(options.format);
  RETURN_IF_ERROR(SynthConfig(options).status());  // before a folder is made
  RETURN_IF_ERROR(MakeOutputFolder(flags.folder, flags.force));
  std::unique_ptr<ProgressLine> line;
  const auto progress = [&line](int64_t done, int64_t total) {
    if (!line) line = std::make_unique<ProgressLine>("synth", total / 1'000'000, "MB");
    line->Show(done / 1'000'000);
    return Status::Ok();
  };
  ASSIGN_OR_RETURN(const SynthReport report, WriteSynthModel(options, flags.folder, progress));
  line.reset();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (flags.json) {
    const Json out = {{"out", flags.folder},
                      {"tensors", report.num_tensors},
                      {"files", report.num_files},
                      {"weight_bytes", report.num_bytes},
                      {"parameters", report.num_parameters},
                      {"seconds", seconds.count()}};
    fmt::print("{}\n", DumpJson(out));
    return Status::Ok();
  }
  fmt::print("{}: {} parameters, {} in {} tensors and {} {}, in {:.1f} s ({}/s)\n", flags.folder,
             FormatCount(report.num_parameters), FormatBytes(report.num_bytes), report.num_tensors,
             report.num_files, report.num_files == 1 ? "file" : "files", seconds.count(),
             FormatBytes(static_cast<int64_t>(static_cast<double>(report.num_bytes) /
                                              std::max(seconds.count(), 1e-9))));
  return Status::Ok();
}

}  // namespace

void AddSynthCommand(CLI::App* app, CommandBody* body) {
  auto flags = std::make_shared<SynthFlags>();
  SynthOptions* options = &flags->options;
  CLI::App* command = app->add_subcommand(
      "synth",
      "Write a checkpoint of a true shape with random weights, in the published tensor names, to\n"
      "measure speed without a download. It has no tokenizer: use token ids.");
  command->add_option("DST", flags->folder, "Folder to write")->required();
  command
      ->add_option("--shape", options->shape, "v2-lite, v2, v3, v3.2, or the path of a config.json")
      ->required();
  command
      ->add_option("--layers", options->num_layers,
                   "Layers (default: the shape's; fewer keep at least one with experts)")
      ->check(CLI::Range(1, 4096));
  command->add_option("--experts", options->num_experts, "Routed experts (default: the shape's)")
      ->check(CLI::Range(1, 65536));
  command->add_option("--format", options->format, "bf16, fp8, int8 or int4 (default: bf16)")
      ->transform(OneOf(kFormats))
      ->type_name("NAME");
  command
      ->add_option("--group-size", options->group_size,
                   "Columns that share a scale: 32, 64 (default for int8) or 128 (for int4)")
      ->check(CLI::IsMember({32, 64, 128}));
  command->add_flag("--zero-points", options->has_zero_points, "int4 with zero points");
  command->add_option("--seed", options->seed, "Seed of the weights")->capture_default_str();
  command->add_option("--threads", options->num_threads, "Threads (0: all usable cores)")
      ->check(CLI::Range(0, 1024));
  command->add_flag("--no-mtp", flags->no_mtp, "Without the multi-token-prediction layer");
  command->add_flag("--force", flags->force, "Write into a folder that is not empty");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags, body] { *body = [flags] { return RunSynth(*flags); }; });
}

}  // namespace hadal
