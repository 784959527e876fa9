// hadal quantize: a checkpoint with weights of four or eight bits.
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/model_path.h"
#include "apps/name_flag.h"
#include "apps/output_folder.h"
#include "apps/progress.h"
#include "apps/units.h"
#include "base/json.h"
#include "convert/quantize_checkpoint.h"
#include "evaluate/text_windows.h"
#include "formats/resumable_writer.h"
#include "model/weight_formats.h"
#include "sys/mapped_file.h"
#include "text/tokenizer.h"

namespace hadal {
namespace {

constexpr int64_t kMaxRecipeBytes = 1 << 24;

struct QuantizeFlags {
  QuantizeOptions options;
  GroupShape shape{.group_size = 0};  // 0: of the format
  std::string recipe_path, calibration_path;
  WindowOptions windows{.window_tokens = 512, .max_tokens = 32768, .has_specials = true};
  bool force = false, json = false;
};

const std::map<std::string, QuantFormat> kFormats = {{"int8", QuantFormat::kInt8Group},
                                                     {"int4", QuantFormat::kInt4Group}};

Result<Recipe> ReadRecipe(const QuantizeFlags& flags) {
  GroupShape shape = flags.shape;
  if (shape.group_size == 0) shape.group_size = DefaultGroupSize(shape.format);
  if (flags.recipe_path.empty()) return Recipe(shape);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.recipe_path, kMaxRecipeBytes));
  return Recipe::Parse(text, shape, flags.recipe_path);
}

// Without a path the bundled text serves, where the model has a tokenizer to read it with.
Status ReadCalibration(const QuantizeFlags& flags, QuantizeOptions* options) {
  if (flags.calibration_path == "none") return Status::Ok();
  ASSIGN_OR_RETURN(const std::string folder, ModelFolderPath(options->source));
  Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::Load(folder);
  if (flags.calibration_path.empty() && tokenizer.status().code() == StatusCode::kNotFound) {
    return Status::Ok();
  }
  RETURN_IF_ERROR(tokenizer.status());
  const std::string path =
      flags.calibration_path.empty() ? BundledCalibrationPath() : flags.calibration_path;
  ASSIGN_OR_RETURN(options->calibration, ReadWindows(**tokenizer, path, flags.windows));
  return Status::Ok();
}

// Work that was begun there goes on; anything else that lies there is left alone.
Status PrepareFolder(const QuantizeFlags& flags) {
  std::error_code error;
  if (std::filesystem::equivalent(flags.options.source, flags.options.folder, error)) {
    return Status::InvalidArgument(
        fmt::format("{}: expected another folder than the source", flags.options.folder));
  }
  RETURN_IF_ERROR(
      MakeOutputFolder(flags.options.folder, flags.force || HasJournal(flags.options.folder)));
  if (flags.force) RETURN_IF_ERROR(RemoveJournal(flags.options.folder));
  return Status::Ok();
}

void PrintReport(const QuantizeReport& report, const QuantizeFlags& flags, double seconds) {
  fmt::print("{}: {} from {} ({:.1f} %), {:.3f} bits a weight, {} tensors in {} {}, in {:.1f} s\n",
             flags.options.folder, FormatBytes(report.num_bytes), FormatBytes(report.source_bytes),
             100.0 * static_cast<double>(report.num_bytes) /
                 static_cast<double>(std::max<int64_t>(report.source_bytes, 1)),
             report.bits_per_weight, report.num_tensors, report.num_files,
             report.num_files == 1 ? "file" : "files", seconds);
  if (report.num_resumed > 0) {
    fmt::print("{} tensors were done by an earlier run\n", report.num_resumed);
  }
}

Status RunQuantize(const QuantizeFlags& flags) {
  const auto start = std::chrono::steady_clock::now();
  QuantizeOptions options = flags.options;
  ASSIGN_OR_RETURN(options.recipe, ReadRecipe(flags));
  RETURN_IF_ERROR(ReadCalibration(flags, &options));
  RETURN_IF_ERROR(PrepareFolder(flags));
  std::unique_ptr<ProgressLine> line;
  const auto progress = [&line](int64_t done, int64_t total) {
    if (!line) line = std::make_unique<ProgressLine>("quantize", total / 1'000'000, "M weights");
    line->Show(done / 1'000'000);
    return Status::Ok();
  };
  ASSIGN_OR_RETURN(const QuantizeReport report, QuantizeCheckpoint(options, progress));
  line.reset();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (!flags.json) {
    PrintReport(report, flags, seconds.count());
    return Status::Ok();
  }
  const Json out = {{"out", options.folder},
                    {"tensors", report.num_tensors},
                    {"files", report.num_files},
                    {"resumed_tensors", report.num_resumed},
                    {"left_out_tensors", report.num_left_out},
                    {"weight_bytes", report.num_bytes},
                    {"source_bytes", report.source_bytes},
                    {"bits_per_weight", report.bits_per_weight},
                    {"seconds", seconds.count()}};
  fmt::print("{}\n", DumpJson(out));
  return Status::Ok();
}

}  // namespace

void AddQuantizeCommand(CLI::App* app, CommandBody* body) {
  auto flags = std::make_shared<QuantizeFlags>();
  CLI::App* command = app->add_subcommand(
      "quantize",
      "Write a copy of a model with weights of four or eight bits. Ended at any moment, the next\n"
      "run goes on; the result is read back and checked.");
  command->add_option("SRC", flags->options.source, "Model folder with wide or FP8 weights")
      ->transform(&LocateModel)
      ->required();
  command->add_option("DST", flags->options.folder, "Folder to write")->required();
  command->add_option("--format", flags->shape.format, "int4 or int8 (default: int4)")
      ->transform(OneOf(kFormats))
      ->type_name("NAME");
  command
      ->add_option("--group-size", flags->shape.group_size,
                   "Columns that share a scale: 32, 64 (default for int8) or 128 (for int4)")
      ->check(CLI::IsMember({32, 64, 128}));
  command->add_flag("--zero-points", flags->shape.has_zero_points, "int4 with zero points");
  command->add_option(
      "--recipe", flags->recipe_path,
      "JSON file with rules: which tensors get which format (docs/quantisation.md)");
  command->add_option("--calibration", flags->calibration_path,
                      "Text to weigh errors by: plain text, a .json list or .jsonl lines; "
                      "none: by size alone, quick (default: a bundled text)");
  command
      ->add_option("--calibration-tokens", flags->windows.max_tokens,
                   "Tokens of the calibration text")
      ->check(CLI::Range(2, 1 << 30))
      ->capture_default_str();
  command
      ->add_option("--damping", flags->options.feedback.damping,
                   "Share of the mean input that is added to every input")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  command
      ->add_option("--sweeps", flags->options.feedback.num_sweeps,
                   "Sweeps over codes and scales after the first rounding")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  command->add_option("--threads", flags->options.num_threads, "Threads (0: all usable cores)")
      ->check(CLI::Range(0, 1024));
  command->add_flag("--force", flags->force,
                    "Write into a folder that is not empty, from the start");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags, body] { *body = [flags] { return RunQuantize(*flags); }; });
}

}  // namespace hadal
