// hadal run: one prompt, one answer (or several), streamed for people or as one JSON object.
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "apps/answer_printer.h"
#include "apps/commands.h"
#include "apps/engine_flags.h"
#include "apps/generation_flags.h"
#include "apps/interrupt.h"
#include "apps/json_lines.h"
#include "apps/layout_choice.h"
#include "apps/open_engine.h"
#include "apps/runner_flags.h"
#include "apps/speculation_flags.h"
#include "base/json.h"
#include "engine/engine.h"
#include "sys/mapped_file.h"
#include "text/chat_message.h"

namespace hadal {
namespace {

constexpr int64_t kMaxPromptBytes = int64_t{64} << 20;

struct RunFlags {
  EngineOptions engine;
  GenerationFlags generation;
  std::optional<std::string> prompt;
  std::string prompt_path, tokens_path, layout, system;
  std::string think = "off";
  bool is_chat = false, is_raw = false;
  int num_choices = 1;
  bool wants_json = false;
};

// One line end at the end is the editor's or the shell's, not the prompt's.
std::string WithoutLastLineEnd(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

Result<std::string> ReadStandardInput() {
  if (isatty(STDIN_FILENO) == 1)
    fmt::print(stderr, "hadal: reading the prompt from the terminal, ctrl-D ends it\n");
  std::string text;
  char buffer[1 << 16];
  for (size_t count = 0; (count = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) {
    text.append(buffer, count);
    if (static_cast<int64_t>(text.size()) > kMaxPromptBytes) {
      return Status::InvalidArgument(fmt::format(
          "standard input: expected a prompt of at most {} bytes, found more", kMaxPromptBytes));
    }
  }
  return WithoutLastLineEnd(std::move(text));
}

Result<std::string> ReadPromptText(const RunFlags& flags) {
  if (flags.prompt) return *flags.prompt;
  if (flags.prompt_path.empty()) return ReadStandardInput();
  ASSIGN_OR_RETURN(std::string text, ReadFile(flags.prompt_path, kMaxPromptBytes));
  return WithoutLastLineEnd(std::move(text));
}

Conversation AsConversation(const RunFlags& flags, std::string text) {
  Conversation conversation;
  const auto add = [&conversation](std::string role, std::string content) {
    ChatMessage& message = conversation.messages.emplace_back();
    message.role = std::move(role);
    message.content = std::move(content);
  };
  if (!flags.system.empty()) add("system", flags.system);
  add("user", std::move(text));
  conversation.options.thinking = flags.think == "on";
  return conversation;
}

// Read before the model is loaded, so that a wrong path is told at once.
struct RunInput {
  std::vector<TokenId> tokens;
  std::string text;
};

Result<RunInput> ReadInput(const RunFlags& flags) {
  RunInput input;
  if (!flags.tokens_path.empty()) {
    ASSIGN_OR_RETURN(input.tokens, ReadTokensFile(flags.tokens_path));
  } else {
    ASSIGN_OR_RETURN(input.text, ReadPromptText(flags));
  }
  return input;
}

GenerationRequest MakeRequest(const RunFlags& flags, RunInput input, const Engine& engine) {
  GenerationRequest request = MakeGenerationRequest(flags.generation, engine.default_sampling());
  request.num_choices = flags.num_choices;
  const bool is_chat = !flags.is_raw && (flags.is_chat || engine.is_chat_model());
  if (!flags.tokens_path.empty()) {
    request.input = std::move(input.tokens);
  } else if (is_chat) {
    request.input = AsConversation(flags, std::move(input.text));
  } else {
    request.input = std::move(input.text);
  }
  return request;
}

Json IdsJson(const std::vector<TokenId>& ids) {
  Json list = Json::array();
  for (const TokenId id : ids) list.push_back(id.value);
  return list;
}

Json LogprobsJson(const CollectedChoice& choice) {
  Json list = Json::array();
  for (const SampledToken& token : choice.tokens) {
    Json top = Json::array();
    for (int i = 0; i < token.num_top; ++i) {
      const TokenLogprob& entry = choice.top_logprobs[token.top_begin + i];
      top.push_back({{"id", entry.token.value}, {"logprob", entry.logprob}});
    }
    list.push_back(
        {{"id", token.token.value}, {"logprob", token.logprob}, {"top_logprobs", std::move(top)}});
  }
  return list;
}

Json ChoiceJson(const CollectedChoice& choice, const RunFlags& flags, const ResponseHead& head) {
  Json calls = Json::array();
  for (const ToolCall& call : choice.tool_calls)
    calls.push_back({{"name", call.name}, {"arguments", call.arguments}});
  std::vector<TokenId> ids;
  for (const SampledToken& token : choice.tokens) ids.push_back(token.token);
  Json object = {{"text", head.has_text ? Json(choice.content) : Json()},
                 {"reasoning", head.has_text ? Json(choice.reasoning) : Json()},
                 {"tool_calls", std::move(calls)},
                 {"ids", IdsJson(ids)},
                 {"finish_reason", FinishReasonName(choice.end.finish)}};
  if (flags.generation.num_logprobs >= 0) object["logprobs"] = LogprobsJson(choice);
  return object;
}

// Tokens of all choices; the prompt counts once.
Json UsageJson(const std::vector<CollectedChoice>& choices) {
  Usage sum = choices[0].end.usage;
  for (size_t i = 1; i < choices.size(); ++i) {
    const Usage& usage = choices[i].end.usage;
    sum.completion_tokens += usage.completion_tokens;
    sum.accepted_prediction_tokens += usage.accepted_prediction_tokens;
    sum.rejected_prediction_tokens += usage.rejected_prediction_tokens;
  }
  return {{"prompt_tokens", sum.prompt_tokens},
          {"cached_tokens", sum.cached_tokens},
          {"completion_tokens", sum.completion_tokens},
          {"accepted_prediction_tokens", sum.accepted_prediction_tokens},
          {"rejected_prediction_tokens", sum.rejected_prediction_tokens}};
}

void PrintJson(const RunFlags& flags, const ResponseHead& head,
               const std::vector<CollectedChoice>& choices, double load_s) {
  const ResponseEnd& end = choices[0].end;
  Json object = ChoiceJson(choices[0], flags, head);
  object["prompt_ids"] = IdsJson(head.prompt);
  object["usage"] = UsageJson(choices);
  object["timings"] = {{"load_s", load_s},
                       {"prefill_s", static_cast<double>(end.timings.prefill_us) * 1e-6},
                       {"decode_s", static_cast<double>(end.timings.decode_us) * 1e-6},
                       {"prefill_tokens_per_s", PrefillTokensPerSecond(end)},
                       {"decode_tokens_per_s", DecodeTokensPerSecond(end)}};
  object["seed"] = head.seed;
  if (choices.size() > 1) {
    Json list = Json::array();
    for (const CollectedChoice& choice : choices) list.push_back(ChoiceJson(choice, flags, head));
    object["choices"] = std::move(list);
  }
  PrintJsonLine(object);
}

void PrintLogprobs(const Engine& engine, const CollectedChoice& choice) {
  const auto name = [&engine](TokenId id) {
    if (engine.tokenizer() == nullptr) return fmt::format("{}", id.value);
    return DumpJson(Json(std::string(engine.tokenizer()->TokenBytes(id))));
  };
  for (const SampledToken& token : choice.tokens) {
    fmt::print("{:>10.4f}  {}", token.logprob, name(token.token));
    for (int i = 0; i < token.num_top; ++i) {
      const TokenLogprob& entry = choice.top_logprobs[token.top_begin + i];
      fmt::print("  | {} {:.4f}", name(entry.token), entry.logprob);
    }
    fmt::print("\n");
  }
}

void PrintForPeople(const RunFlags& flags, const Engine& engine, const ResponseHead& head,
                    const std::vector<CollectedChoice>& choices) {
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices.size() > 1) {
      fmt::print("--- {} of {}\n", i + 1, choices.size());
      AnswerPrinter printer(head.has_text);
      printer.Print(choices[i]);
      printer.Finish();
    }
    if (flags.generation.num_logprobs >= 0) PrintLogprobs(engine, choices[i]);
  }
  std::fflush(stdout);
  fmt::print(stderr, "hadal: {} ({})\n", DescribeSpeed(choices[0].end),
             FinishReasonName(choices[0].end.finish));
}

Status Run(const RunFlags& flags) {
  HandleInterrupts();
  ASSIGN_OR_RETURN(RunInput input, ReadInput(flags));
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, OpenEngine(flags.engine, flags.layout));
  const double load_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ASSIGN_OR_RETURN(const std::shared_ptr<ResponseStream> stream,
                   engine->Submit(MakeRequest(flags, std::move(input), *engine)));
  const bool is_streaming = !flags.wants_json && flags.num_choices == 1;
  AnswerPrinter printer(stream->head().has_text);
  ResponseCollector collector(flags.num_choices);
  const bool was_interrupted =
      FollowAnswer(engine.get(), stream.get(), is_streaming ? &printer : nullptr, &collector);
  for (const CollectedChoice& choice : collector.choices()) {
    if (choice.end.finish == FinishReason::kError) return Status::Internal(choice.end.error);
  }
  if (flags.wants_json) {
    PrintJson(flags, stream->head(), collector.choices(), load_s);
  } else {
    PrintForPeople(flags, *engine, stream->head(), collector.choices());
  }
  return was_interrupted ? Status::Cancelled("interrupted") : Status::Ok();
}

}  // namespace

void AddRunCommand(CLI::App* app, CommandBody* body) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app->add_subcommand(
      "run",
      "Answer one prompt. A model with a chat template is asked in its chat layout; --raw\n"
      "continues the prompt as plain text instead");
  AddModelArgument(command, &flags->engine.runner.model_path);
  CLI::Option* prompt = command->add_option("-p,--prompt", flags->prompt, "The prompt");
  CLI::Option* prompt_file =
      command->add_option("--prompt-file", flags->prompt_path,
                          "File with the prompt (one line end at its end is dropped)");
  CLI::Option* tokens =
      command->add_option("--tokens", flags->tokens_path,
                          "JSON file with the token ids of the prompt, taken as they are");
  prompt->excludes(prompt_file)->excludes(tokens);
  prompt_file->excludes(tokens);
  CLI::Option* chat =
      command->add_flag("--chat", flags->is_chat, "Use the chat layout even without a template");
  CLI::Option* raw = command->add_flag("--raw", flags->is_raw,
                                       "Continue the prompt; control tokens may be written in it");
  CLI::Option* system = command->add_option("--system", flags->system, "System message");
  CLI::Option* think = command
                           ->add_option("--think", flags->think,
                                        "Reason before the answer, where the layout knows it")
                           ->check(CLI::IsMember({"on", "off"}))
                           ->capture_default_str();
  for (CLI::Option* plain : {raw, tokens}) plain->excludes(chat)->excludes(system)->excludes(think);
  raw->excludes(tokens);
  AddLayoutOption(command, &flags->layout);
  command->add_option("--n", flags->num_choices, "Number of answers")->check(CLI::Range(1, 128));
  command->add_flag("--json", flags->wants_json, "Print one JSON object at the end");
  AddGenerationFlags(command, &flags->generation);
  AddRunnerFlags(command, &flags->engine.runner);
  AddCacheDirFlags(command, &flags->engine);
  AddSpeculationFlags(command, &flags->engine);
  command->footer("Without -p, --prompt-file and --tokens the prompt is read from standard input.");
  command->callback([flags, body] { *body = [flags] { return Run(*flags); }; });
}

}  // namespace hadal
