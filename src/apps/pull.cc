// hadal pull: a model from a hub, onto this disk.
#include "hub/pull.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/hub_flags.h"
#include "apps/interrupt.h"
#include "apps/progress.h"
#include "apps/units.h"
#include "base/json.h"

namespace hadal {
namespace fs = std::filesystem;

namespace {

struct PullFlags {
  std::string name, target;
  PullOptions options;
  bool has_json = false;
};

std::string WithoutLastSlash(const fs::path& path) {
  std::string text = path.lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

Result<PullOptions> Complete(const PullFlags& flags) {
  PullOptions options = flags.options;
  ASSIGN_OR_RETURN(options.repo, ParseRepoName(flags.name));
  const int stall_s = options.http.stall_s;
  ASSIGN_OR_RETURN(options.http, HubSettings());
  options.http.stall_s = stall_s;
  std::error_code error;
  options.target = WithoutLastSlash(fs::absolute(
      flags.target.empty() ? PulledModels().FolderOf(options.repo) : flags.target, error));
  return options;
}

void PrintReport(const PullFlags& flags, const PullOptions& options, const PullReport& report,
                 double seconds) {
  if (flags.has_json) {
    const Json json = {{"repo", options.repo.id()},
                       {"revision", options.repo.revision},
                       {"commit", report.commit},
                       {"path", options.target},
                       {"files", report.num_files},
                       {"bytes", report.num_bytes},
                       {"downloaded_bytes", report.downloaded_bytes},
                       {"up_to_date", report.was_up_to_date},
                       {"seconds", seconds}};
    fmt::print("{}\n", DumpJson(json));
    return;
  }
  fmt::print("{}: {} {}, {}, commit {:.12} in {}\n", options.repo.full(), report.num_files,
             report.num_files == 1 ? "file" : "files", FormatBytes(report.num_bytes), report.commit,
             options.target);
  if (report.was_up_to_date) {
    fmt::print("it was there already\n");
    return;
  }
  const double rate = static_cast<double>(report.downloaded_bytes) / std::max(seconds, 1e-3);
  fmt::print("downloaded {} in {:.1f} s ({}/s)\n", FormatBytes(report.downloaded_bytes), seconds,
             FormatBytes(static_cast<int64_t>(rate)));
}

Status RunPull(const PullFlags& flags) {
  HandleInterrupts();  // what is there stays, and the next pull continues
  ASSIGN_OR_RETURN(const PullOptions options, Complete(flags));
  const auto start = std::chrono::steady_clock::now();
  std::unique_ptr<ProgressLine> line;
  const auto progress = [&](int64_t done, int64_t total) {
    if (!line) {
      line = std::make_unique<ProgressLine>(options.repo.full(), total / 1'000'000, "MB");
    }
    line->Show(done / 1'000'000);
  };
  const Result<PullReport> report = PullModel(options, progress);
  line.reset();
  RETURN_IF_ERROR(report.status());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  PrintReport(flags, options, *report, seconds.count());
  return Status::Ok();
}

}  // namespace

void AddPullCommand(CLI::App* app, CommandBody* body) {
  auto flags = std::make_shared<PullFlags>();
  PullOptions* options = &flags->options;
  CLI::App* command = app->add_subcommand(
      "pull",
      "Download a model from a hub. Every file is checked against the hub's hash; a pull that was\n"
      "broken off goes on where it was; nothing unfinished is ever opened as a model. Afterwards\n"
      "the model has its name: hadal run ORG/NAME");
  command->add_option("NAME", flags->name, "ORG/NAME or ORG/NAME@REVISION")->required();
  command->add_option("--include", options->includes,
                      "Only files that meet a pattern, such as '*.json' (may be repeated)");
  command->add_option("--to", flags->target,
                      "Folder for the files (default: where models are found by their names)");
  command->add_option("--connections", options->num_connections, "Files at the same time")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command
      ->add_option("--retries", options->retry.max_failures,
                   "Failures in a row, nothing won between them, after which a pull ends")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--retry-wait", options->retry.first_wait_s,
                   "Seconds before the first retry; doubled from failure to failure")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  command
      ->add_option("--stall", options->http.stall_s,
                   "Seconds without a byte after which a connection is given up")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  command->add_flag("--json", flags->has_json, "Print one JSON object");
  command->footer(
      "HF_ENDPOINT names another hub; HF_TOKEN, or the file that its other programs keep, holds "
      "the\n"
      "token; HADAL_HUB_DIR the folder for models; http_proxy and https_proxy are honoured.");
  command->callback([flags, body] { *body = [flags] { return RunPull(*flags); }; });
}

}  // namespace hadal
