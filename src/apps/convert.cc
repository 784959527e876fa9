// hadal convert: a model that another program packed, in hadal's own formats.
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/output_folder.h"
#include "apps/progress.h"
#include "apps/units.h"
#include "base/json.h"
#include "convert/convert_checkpoint.h"
#include "formats/gguf.h"
#include "formats/gguf_path.h"
#include "formats/resumable_writer.h"
#include "formats/sharded_writer.h"
#include "sys/machine.h"
#include "sys/mapped_file.h"
#include "text/gguf_tokenizer_files.h"

namespace hadal {
namespace {

struct ConvertFlags {
  ConvertOptions options;
  bool force = false, json = false;
};

// Work that was begun there goes on; anything else that lies there is left alone.
Status PrepareFolder(const ConvertFlags& flags) {
  const ConvertOptions& options = flags.options;
  std::error_code error;
  if (std::filesystem::equivalent(options.source, options.folder, error)) {
    return Status::InvalidArgument(
        fmt::format("{}: expected another folder than the source", options.folder));
  }
  RETURN_IF_ERROR(MakeOutputFolder(options.folder, flags.force || HasJournal(options.folder)));
  return flags.force ? RemoveJournal(options.folder) : Status::Ok();
}

// A GGUF file carries its tokenizer; one without it makes a folder without it.
Status WriteTokenizer(const ConvertOptions& options) {
  ASSIGN_OR_RETURN(const std::optional<std::string> path, FindGgufModel(options.source));
  if (!path) return Status::Ok();
  ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(*path));
  ASSIGN_OR_RETURN(const GgufFile file, ParseGguf(mapped.bytes(), *path));
  const Result<TokenizerFiles> files = MakeTokenizerFiles(file, *path);
  if (files.status().code() == StatusCode::kNotFound) return Status::Ok();
  RETURN_IF_ERROR(files.status());
  RETURN_IF_ERROR(WriteWholeFile(options.folder + "/tokenizer.json", files.value().tokenizer));
  return WriteWholeFile(options.folder + "/tokenizer_config.json", files.value().config);
}

Json CountsOf(const std::map<std::string, int>& counts) {
  Json json = Json::object();
  for (const auto& [what, count] : counts) json[what] = count;
  return json;
}

void PrintJson(const ConvertReport& report, const ConvertOptions& options, double seconds) {
  const Json out = {{"out", options.folder},
                    {"kept", CountsOf(report.exact)},
                    {"changed", CountsOf(report.rounded)},
                    {"dropped", report.dropped},
                    {"tensors", report.num_tensors},
                    {"files", report.num_files},
                    {"resumed_tensors", report.num_resumed},
                    {"weight_bytes", report.num_bytes},
                    {"source_bytes", report.source_bytes},
                    {"seconds", seconds}};
  fmt::print("{}\n", DumpJson(out));
}

void PrintTable(const ConvertReport& report, const ConvertOptions& options, double seconds) {
  const auto print = [](std::string_view label, const std::map<std::string, int>& counts) {
    for (const auto& [what, count] : counts) {
      fmt::print("{:<9} {:>6} tensors  {}\n", label, count, what);
    }
  };
  print("kept", report.exact);
  print("rounded", report.rounded);
  constexpr size_t kMaxListed = 5;
  for (size_t i = 0; i < report.dropped.size() && i < kMaxListed; ++i) {
    fmt::print("{:<9} {}\n", "dropped", report.dropped[i]);
  }
  if (report.dropped.size() > kMaxListed) {
    fmt::print("{:<9} {} more\n", "dropped", report.dropped.size() - kMaxListed);
  }
  fmt::print("{}: {} from {}, {} tensors in {} {}, in {:.1f} s\n", options.folder,
             FormatBytes(report.num_bytes), FormatBytes(report.source_bytes), report.num_tensors,
             report.num_files, report.num_files == 1 ? "file" : "files", seconds);
}

Status RunConvert(const ConvertFlags& flags) {
  const auto start = std::chrono::steady_clock::now();
  ConvertOptions options = flags.options;
  if (options.num_threads == 0) options.num_threads = NumUsableCores();
  RETURN_IF_ERROR(PrepareFolder(flags));
  RETURN_IF_ERROR(WriteTokenizer(options));
  std::unique_ptr<ProgressLine> line;
  const auto progress = [&line](int64_t done, int64_t total) {
    if (!line) line = std::make_unique<ProgressLine>("convert", total, "tensors");
    line->Show(done);
    return Status::Ok();
  };
  ASSIGN_OR_RETURN(const ConvertReport report, ConvertCheckpoint(options, progress));
  line.reset();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (flags.json) {
    PrintJson(report, options, seconds.count());
  } else {
    PrintTable(report, options, seconds.count());
  }
  return Status::Ok();
}

}  // namespace

void AddConvertCommand(CLI::App* app, CommandBody* body) {
  auto flags = std::make_shared<ConvertFlags>();
  CLI::App* command = app->add_subcommand(
      "convert",
      "Write a GGUF, compressed-tensors, GPTQ or AWQ model as a folder in hadal's own formats.\n"
      "Every value is kept; where no format can, nothing is written unless --requantize allows\n"
      "to round. Reports what was kept, rounded and dropped. Ended at any moment, the next run\n"
      "goes on.");
  command->add_option("SRC", flags->options.source, "GGUF file, or model folder")->required();
  command->add_option("DST", flags->options.folder, "Folder to write")->required();
  command->add_flag("--requantize", flags->options.may_requantize,
                    "Round what no format holds exactly, to four or eight bits");
  command
      ->add_option("--threads", flags->options.num_threads, "Threads (default: all usable cores)")
      ->check(CLI::Range(0, 1024));
  command->add_flag("--force", flags->force,
                    "Write into a folder that is not empty, from the start");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags, body] { *body = [flags] { return RunConvert(*flags); }; });
}

}  // namespace hadal
