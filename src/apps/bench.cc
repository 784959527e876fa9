// hadal bench: how fast a model runs here, and how near that is to what the machine allows.
#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/bench_page.h"
#include "apps/bench_report.h"
#include "apps/bench_speculation.h"
#include "apps/bench_suite.h"
#include "apps/commands.h"
#include "apps/runner_flags.h"
#include "backend/step_profile.h"
#include "sys/mapped_file.h"

namespace hadal {
namespace {

constexpr int64_t kMaxReportBytes = int64_t{64} << 20;

struct BenchFlags {
  BenchOptions options;
  std::string suite = "quick";
  std::string compare_path, csv_path, html_path, trace_path;
  std::vector<int> prefill, batches, depths;
  std::string spec_text_path;
  bool json = false, has_profile = false, is_speculation = false;
};

Status WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file.good()) return Status::Ok();
  return Status::Io(
      fmt::format("{}: expected to write {} bytes, the system refused", path, text.size()));
}

// Lengths, batches and depths that were named replace the suite.
Result<std::vector<BenchCase>> Cases(const BenchFlags& flags) {
  std::vector<BenchCase> cases;
  const std::vector<int> depths = flags.depths.empty() ? std::vector<int>{0} : flags.depths;
  for (const int depth : depths) {
    for (const int tokens : flags.prefill) cases.push_back({"prefill", 1, depth, tokens});
    for (const int batch : flags.batches) cases.push_back({"decode", batch, depth, 8});
  }
  if (!cases.empty()) return cases;
  return CasesOfSuite(flags.suite);
}

Status RunSpeculationBench(const BenchFlags& flags) {
  ASSIGN_OR_RETURN(const SpeculationReport report,
                   MeasureSpeculation({.runner = flags.options.runner,
                                       .depth = flags.depths.empty() ? 0 : flags.depths[0],
                                       .repetitions = flags.options.repetitions,
                                       .text_path = flags.spec_text_path}));
  std::cout << (flags.json ? DumpJson(SpeculationAsJson(report)) + "\n"
                           : SpeculationAsText(report));
  return Status::Ok();
}

Status RunBenchCommand(BenchFlags flags) {
  if (flags.is_speculation) return RunSpeculationBench(flags);
  ASSIGN_OR_RETURN(flags.options.cases, Cases(flags));
  Json earlier;
  if (!flags.compare_path.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.compare_path, kMaxReportBytes));
    ASSIGN_OR_RETURN(earlier, ParseJson(text, flags.compare_path));
    RETURN_IF_ERROR(CheckEarlierBench(earlier, flags.compare_path));
  }
  if (flags.has_profile || !flags.trace_path.empty()) {
    flags.options.runner.profile = std::make_shared<StepProfile>();
  }
  ASSIGN_OR_RETURN(const BenchReport report, RunBench(flags.options, [](const BenchResult& result) {
                     std::cerr << BenchTableRow(result);
                   }));
  if (!flags.csv_path.empty()) RETURN_IF_ERROR(WriteText(flags.csv_path, BenchAsCsv(report)));
  if (!flags.html_path.empty()) RETURN_IF_ERROR(WriteText(flags.html_path, BenchPage(report)));
  if (!flags.trace_path.empty()) {
    RETURN_IF_ERROR(WriteText(flags.trace_path, DumpJson(flags.options.runner.profile->AsTrace())));
  }
  if (flags.json) {
    std::cout << DumpJson(BenchAsJson(report)) << '\n';
  } else {
    std::cout << BenchTableHead(report.model);
    for (const BenchResult& result : report.results) std::cout << BenchTableRow(result);
  }
  if (flags.compare_path.empty()) return Status::Ok();
  ASSIGN_OR_RETURN(const std::string comparison, CompareBench(report, earlier, flags.compare_path));
  (flags.json ? std::cerr : std::cout) << comparison;
  return Status::Ok();
}

}  // namespace

void AddBenchCommand(CLI::App* app, CommandBody* body) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* command = app->add_subcommand(
      "bench",
      "Measure how fast a model reads prompts and generates, each figure beside the limit that "
      "the\n"
      "machine sets at that moment: bytes that a step must read against the read bandwidth, and\n"
      "operations against the rate of the kernels' own arithmetic.");
  AddModelArgument(command, &flags->options.runner.model_path);
  AddRunnerFlags(command, &flags->options.runner);
  command->add_option("--suite", flags->suite, "quick, prefill, decode, batch, depth or full")
      ->capture_default_str();
  command->add_option("--prefill", flags->prefill, "Instead of a suite: lengths of prompts")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--batch", flags->batches, "Instead of a suite: sequences that decode")
      ->check(CLI::Range(1, 4096));
  command->add_option("--depth", flags->depths, "With --prefill and --batch: tokens before")
      ->check(CLI::Range(0, 1 << 20));
  command->add_option("--repetitions", flags->options.repetitions, "Passages of each case")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--compare", flags->compare_path, "JSON of an earlier run to compare with");
  command->add_option("--csv", flags->csv_path, "Also write the results as CSV");
  command->add_option("--html", flags->html_path, "Also write a page with the curves");
  command->add_flag("--profile", flags->has_profile,
                    "Also tell how long each operation of a step takes");
  command->add_option("--trace", flags->trace_path,
                      "Also write the operations of the last case as a trace for Perfetto");
  CLI::Option* speculation = command->add_flag(
      "--spec", flags->is_speculation,
      "Instead of a suite: what verifying 1 to 8 tokens costs, what speed follows from it");
  command
      ->add_option("--spec-text", flags->spec_text_path,
                   "With --spec: text, or JSON list of texts, on which the MTP module's guesses\n"
                   "are counted")
      ->needs(speculation);
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags, body] { *body = [flags] { return RunBenchCommand(*flags); }; });
}

}  // namespace hadal
