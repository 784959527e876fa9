// hadal logits: the logits of every position, and of the MTP module, into a safetensors file.
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/model_path.h"
#include "apps/progress.h"
#include "apps/runner_flags.h"
#include "base/json.h"
#include "formats/safetensors_writer.h"
#include "runner/logits_runner.h"

namespace hadal {
namespace {

struct LogitsFlags {
  std::string tokens_path, out_path;
  RunnerOptions runner;
  bool json = false;
};

Result<std::unique_ptr<SafetensorsWriter>> CreateOutput(const LogitsFlags& flags,
                                                        const LogitsRunner& runner,
                                                        int num_tokens) {
  std::vector<SafetensorsSpec> specs = {{"logits", DType::kF32, {num_tokens, runner.vocab_size()}}};
  if (runner.has_mtp()) {
    specs.push_back(
        {"mtp_logits", DType::kF32, {std::max(num_tokens - 1, 0), runner.vocab_size()}});
  }
  ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(flags.out_path, specs));
  return std::make_unique<SafetensorsWriter>(std::move(writer));
}

Status RunLogits(const LogitsFlags& flags) {
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const std::vector<TokenId> tokens, ReadTokensFile(flags.tokens_path));
  ASSIGN_OR_RETURN(const std::unique_ptr<LogitsRunner> runner,
                   LogitsRunner::Create(flags.runner, static_cast<int>(tokens.size())));
  ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsWriter> writer,
                   CreateOutput(flags, *runner, static_cast<int>(tokens.size())));
  ProgressLine progress("logits", static_cast<int64_t>(tokens.size()), "tokens");
  const Status run = runner->Run(tokens, [&](const LogitsChunk& chunk) -> Status {
    const int64_t row_bytes = int64_t{chunk.vocab_size} * static_cast<int64_t>(sizeof(float));
    const auto bytes = std::as_bytes(std::span(
        chunk.data, static_cast<size_t>(chunk.num_rows) * static_cast<size_t>(chunk.vocab_size)));
    if (chunk.kind == LogitsKind::kMain) progress.Show(chunk.first_row + chunk.num_rows);
    return writer->Write(chunk.kind == LogitsKind::kMain ? 0 : 1, chunk.first_row * row_bytes,
                         bytes);
  });
  // Of the tokens, as far as the model can say; what the writer says names its own file.
  if (run.code() == StatusCode::kInvalidArgument) return run.Annotate(flags.tokens_path);
  RETURN_IF_ERROR(run);
  RETURN_IF_ERROR(writer->Finish());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (flags.json) {
    const Json report = {{"tokens", tokens.size()},
                         {"vocab_size", runner->vocab_size()},
                         {"has_mtp", runner->has_mtp()},
                         {"out", flags.out_path},
                         {"seconds", seconds.count()}};
    fmt::print("{}\n", DumpJson(report));
  } else {
    fmt::print("{}: logits [{}, {}]{} in {:.2f} s\n", flags.out_path, tokens.size(),
               runner->vocab_size(), runner->has_mtp() ? " and mtp_logits" : "", seconds.count());
  }
  return Status::Ok();
}

}  // namespace

void AddLogitsCommand(CLI::App* app, CommandBody* body) {
  auto flags = std::make_shared<LogitsFlags>();
  CLI::App* command = app->add_subcommand(
      "logits",
      "Write the logits of every position of a sequence of token ids to a safetensors file");
  AddModelArgument(command, &flags->runner.model_path);
  command->add_option("--tokens", flags->tokens_path, "JSON file with a list of token ids")
      ->required();
  command->add_option("--out", flags->out_path, "safetensors file to write: logits, and mtp_logits")
      ->required();
  AddRunnerFlags(command, &flags->runner);
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags, body] { *body = [flags] { return RunLogits(*flags); }; });
}

}  // namespace hadal
