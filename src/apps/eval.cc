// hadal eval: how good a model is on a text, against another model, and on questions with choices.
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/model_path.h"
#include "apps/name_flag.h"
#include "apps/progress.h"
#include "apps/runner_flags.h"
#include "base/json.h"
#include "evaluate/choice_evaluation.h"
#include "evaluate/text_evaluation.h"
#include "sys/mapped_file.h"
#include "text/tokenizer.h"

namespace hadal {
namespace {

constexpr int64_t kMaxQuestionBytes = int64_t{1} << 30;

struct EvalFlags {
  std::string text_path, choices_path, against, store_path;
  RunnerOptions runner;
  WindowOptions windows;
  ChoiceOptions choices;
  bool json = false;
};

const std::map<std::string, ChoiceStyle> kStyles = {{"letter", ChoiceStyle::kLetter},
                                                    {"text", ChoiceStyle::kText}};

int64_t CountTokens(const std::vector<TokenWindow>& windows) {
  int64_t total = 0;
  for (const TokenWindow& window : windows) total += static_cast<int64_t>(window.size());
  return total;
}

Json TextReport(const TextScores& scores, const std::vector<TokenWindow>& windows,
                bool is_compared) {
  Json out = {{"tokens", scores.nll.count()},
              {"windows", windows.size()},
              {"nll", scores.nll.mean()},
              {"nll_stderr", scores.nll.error()},
              {"perplexity", scores.perplexity()},
              {"stderr", scores.perplexity_error()},
              {"kl", nullptr},
              {"top1_agreement", nullptr},
              {"mtp_agreement", nullptr}};
  if (scores.has_mtp) {
    out["mtp_agreement"] = scores.mtp_agreement.mean();
    out["mtp_agreement_stderr"] = scores.mtp_agreement.error();
  }
  if (is_compared) {
    out["kl"] = scores.kl.mean();
    out["kl_stderr"] = scores.kl.error();
    out["top1_agreement"] = scores.top1_agreement.mean();
    out["top1_agreement_stderr"] = scores.top1_agreement.error();
    out["against_nll"] = scores.other_nll.mean();
    out["against_perplexity"] = std::exp(scores.other_nll.mean());
  }
  return out;
}

void PrintText(const TextScores& scores, const EvalFlags& flags, size_t num_windows) {
  fmt::print("text            {} tokens foretold in {} windows\n", scores.nll.count(), num_windows);
  fmt::print("perplexity      {:.4f} ± {:.4f}\n", scores.perplexity(), scores.perplexity_error());
  fmt::print("nats per token  {:.5f} ± {:.5f}\n", scores.nll.mean(), scores.nll.error());
  if (scores.has_mtp) {
    fmt::print("MTP agreement   {:.2f} % ± {:.2f}\n", 100 * scores.mtp_agreement.mean(),
               100 * scores.mtp_agreement.error());
  }
  if (flags.against.empty()) return;
  fmt::print("against         {}: perplexity {:.4f}\n", flags.against,
             std::exp(scores.other_nll.mean()));
  fmt::print("KL divergence   {:.6f} ± {:.6f} nats per token\n", scores.kl.mean(),
             scores.kl.error());
  fmt::print("same best token {:.2f} % ± {:.2f}\n", 100 * scores.top1_agreement.mean(),
             100 * scores.top1_agreement.error());
}

Status RunText(const EvalFlags& flags, const Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const std::vector<TokenWindow> windows,
                   ReadWindows(tokenizer, flags.text_path, flags.windows));
  TextEvaluation evaluation = {
      .model = flags.runner, .against = {}, .stored_against = {}, .store_path = flags.store_path};
  if (flags.against.ends_with(".safetensors")) {
    evaluation.stored_against = flags.against;
  } else if (!flags.against.empty()) {
    evaluation.against = flags.runner;
    evaluation.against->model_path = LocateModel(flags.against);
  }
  ProgressLine line("eval", CountTokens(windows), "tokens");
  ASSIGN_OR_RETURN(const TextScores scores,
                   EvaluateText(evaluation, windows, [&](int64_t done) { line.Show(done); }));
  line.Clear();
  if (flags.json) {
    fmt::print("{}\n", DumpJson(TextReport(scores, windows, !flags.against.empty())));
  } else {
    PrintText(scores, flags, windows.size());
  }
  return Status::Ok();
}

Json ChoiceReport(const ChoiceScores& scores, const EvalFlags& flags) {
  Json out = {{"questions", scores.accuracy.count()},
              {"accuracy", scores.accuracy.mean()},
              {"stderr", scores.accuracy.error()}};
  if (flags.choices.style == ChoiceStyle::kText) {
    out["accuracy_per_byte"] = scores.accuracy_per_byte.mean();
    out["accuracy_per_byte_stderr"] = scores.accuracy_per_byte.error();
  }
  if (!scores.by_subject.empty()) out["by_subject"] = Json::object();
  for (const auto& [subject, accuracy] : scores.by_subject) {
    out["by_subject"][subject] = {{"questions", accuracy.count()},
                                  {"accuracy", accuracy.mean()},
                                  {"stderr", accuracy.error()}};
  }
  return out;
}

void PrintChoices(const ChoiceScores& scores, const EvalFlags& flags) {
  const auto print = [](const std::string& label, const MeanEstimate& accuracy) {
    fmt::print("{:<24} {:>6.2f} % ± {:.2f}  ({} questions)\n", label, 100 * accuracy.mean(),
               100 * accuracy.error(), accuracy.count());
  };
  print("accuracy", scores.accuracy);
  if (flags.choices.style == ChoiceStyle::kText) print("per byte", scores.accuracy_per_byte);
  for (const auto& [subject, accuracy] : scores.by_subject) print("  " + subject, accuracy);
}

Status RunChoices(const EvalFlags& flags, const Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(flags.choices_path, kMaxQuestionBytes));
  ASSIGN_OR_RETURN(const std::vector<ChoiceQuestion> questions,
                   ParseChoiceQuestions(content, flags.choices_path));
  ProgressLine line("eval", static_cast<int64_t>(questions.size()) - flags.choices.num_shots,
                    "questions");
  const Result<ChoiceScores> scores = EvaluateChoices(
      flags.runner, tokenizer, questions, flags.choices, [&](int64_t done) { line.Show(done); });
  if (!scores.ok()) return scores.status().Annotate(flags.choices_path);
  line.Clear();
  if (flags.json) {
    fmt::print("{}\n", DumpJson(ChoiceReport(*scores, flags)));
  } else {
    PrintChoices(*scores, flags);
  }
  return Status::Ok();
}

Status RunEval(const EvalFlags& flags) {
  ASSIGN_OR_RETURN(const std::string folder, ModelFolderPath(flags.runner.model_path));
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::Load(folder));
  return flags.text_path.empty() ? RunChoices(flags, *tokenizer) : RunText(flags, *tokenizer);
}

}  // namespace

void AddEvalCommand(CLI::App* app, CommandBody* body) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App* command = app->add_subcommand(
      "eval",
      "Measure a model: perplexity of a text, its distance from another model (--against), the\n"
      "agreement of its MTP module, or its share of right answers to questions with choices.");
  AddModelArgument(command, &flags->runner.model_path);
  CLI::Option_group* input = command->add_option_group("input");
  input->require_option(1);
  input->add_option(
      "--text", flags->text_path,
      "Text to foretell: plain text, cut into windows (the last part is left out); or "
      "a .json list of texts or .jsonl lines {\"text\"}, of each the first window");
  input->add_option("--choices", flags->choices_path,
                    "JSON Lines {\"question\", \"choices\", \"answer\", \"subject\"?}");
  command->add_option("--against", flags->against,
                      "Another model, or a .safetensors file of stored logits, to compare with");
  command->add_option("--store", flags->store_path,
                      "Store the logits in a .safetensors file, for --against");
  command->add_option("--window", flags->windows.window_tokens, "Tokens of a window")
      ->check(CLI::Range(2, 1 << 24))
      ->capture_default_str();
  command
      ->add_option("--max-tokens", flags->windows.max_tokens, "Stop after so many tokens (0: all)")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--specials", flags->windows.has_specials,
                    "Control tokens written in a text are control tokens");
  command->add_option("--first-text", flags->windows.first_text, "First text of a list, from 0")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--num-texts", flags->windows.num_texts, "Texts of a list (0: all)")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--shots", flags->choices.num_shots,
                   "Questions that serve as worked examples before each other one")
      ->check(CLI::Range(0, 1000));
  command
      ->add_option("--style", flags->choices.style,
                   "letter: choices stand in the prompt, the answer is a letter; text: the "
                   "answer is a choice's text")
      ->transform(OneOf(kStyles))
      ->type_name("NAME");
  AddRunnerFlags(command, &flags->runner);
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->callback([flags, body] { *body = [flags] { return RunEval(*flags); }; });
}

}  // namespace hadal
