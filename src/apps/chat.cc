// hadal chat: a conversation in the terminal. Answers go to standard output, everything else to
// standard error, so that a piped conversation leaves just the answers.
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "apps/answer_printer.h"
#include "apps/commands.h"
#include "apps/generation_flags.h"
#include "apps/interrupt.h"
#include "apps/layout_choice.h"
#include "apps/open_engine.h"
#include "apps/runner_flags.h"
#include "apps/speculation_flags.h"
#include "apps/terminal_input.h"
#include "base/json.h"
#include "engine/engine.h"
#include "text/chat_message.h"

namespace hadal {
namespace {

constexpr std::string_view kHelp =
    "/help            this list\n"
    "/reset           forget the conversation, keep the system message\n"
    "/system [TEXT]   set the system message and start anew; without TEXT none\n"
    "/think on|off    reason before answering, or not\n"
    "/save FILE       write the conversation as JSON, as `hadal render` reads it\n"
    "/exit            leave; so does ctrl-D\n"
    "A line that ends in \\ goes on in the next one; \"\"\" opens and closes a text of many "
    "lines.\n"
    "Ctrl-C stops an answer.\n";

struct ChatFlags {
  EngineOptions engine;
  GenerationFlags generation;
  std::string layout, system;
  std::string think = "off";
};

ChatMessage Message(std::string role, std::string content) {
  ChatMessage message;
  message.role = std::move(role);
  message.content = std::move(content);
  return message;
}

Json MessageJson(const ChatMessage& message) {
  Json object = {{"role", message.role}, {"content", message.content}};
  if (!message.reasoning_content.empty()) object["reasoning_content"] = message.reasoning_content;
  for (const ToolCall& call : message.tool_calls) {
    object["tool_calls"].push_back(
        {{"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return object;
}

class ChatSession {
 public:
  ChatSession(const ChatFlags& flags, Engine* engine) : flags_(flags), engine_(engine) {
    conversation_.options.thinking = flags.think == "on";
    Restart(flags.system);
  }

  // Until the input ends or /exit.
  void Run() {
    TerminalInput input;
    while (const std::optional<std::string> text = input.ReadMessage()) {
      if (text->starts_with('/')) {
        if (!Obey(*text)) return;
      } else if (!text->empty()) {
        Answer(*text);
      }
    }
  }

 private:
  void Restart(std::string system) {
    system_ = std::move(system);
    conversation_.messages.clear();
    if (!system_.empty()) conversation_.messages.push_back(Message("system", system_));
  }

  // False to leave.
  bool Obey(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string command = line.substr(0, space);
    const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
    if (command == "/exit" || command == "/quit") return false;
    if (command == "/help") {
      fmt::print(stderr, "{}", kHelp);
    } else if (command == "/reset") {
      Restart(system_);
    } else if (command == "/system") {
      Restart(rest);
    } else if (command == "/think" && (rest == "on" || rest == "off")) {
      conversation_.options.thinking = rest == "on";
    } else if (command == "/save" && !rest.empty()) {
      Save(rest);
    } else {
      fmt::print(stderr,
                 "hadal: {}: unknown command, or its argument is missing; /help lists all\n",
                 command);
    }
    return true;
  }

  void Save(const std::string& path) const {
    Json messages = Json::array();
    for (const ChatMessage& message : conversation_.messages)
      messages.push_back(MessageJson(message));
    const Json file = {{"messages", std::move(messages)},
                       {"options", {{"thinking", conversation_.options.thinking}}}};
    std::ofstream out(path);
    out << DumpJson(file) << '\n';
    out.close();
    if (out.fail()) {
      fmt::print(stderr, "hadal: {}: cannot be written\n", path);
    } else {
      fmt::print(stderr, "hadal: {} messages written to {}\n", conversation_.messages.size(), path);
    }
  }

  void Answer(const std::string& text) {
    conversation_.messages.push_back(Message("user", text));
    GenerationRequest request =
        MakeGenerationRequest(flags_.generation, engine_->default_sampling());
    request.input = conversation_;
    const auto stream = engine_->Submit(request);
    if (!stream.ok()) return Withdraw(stream.status().message());
    AnswerPrinter printer(/*has_text=*/true);
    ResponseCollector collector(1);
    const bool was_stopped = FollowAnswer(engine_, stream.value().get(), &printer, &collector);
    const CollectedChoice& choice = collector.choices()[0];
    if (choice.end.finish == FinishReason::kError) return Withdraw(choice.end.error);
    ChatMessage answer = Message("assistant", choice.content);
    answer.reasoning_content = choice.reasoning;
    answer.tool_calls = choice.tool_calls;
    conversation_.messages.push_back(std::move(answer));
    fmt::print(stderr, "[{}{}]\n", DescribeSpeed(choice.end),
               was_stopped                                  ? "; stopped"
               : choice.end.finish == FinishReason::kLength ? "; cut by a limit"
                                                            : "");
  }

  // The message that could not be answered is as if it was not said.
  void Withdraw(const std::string& why) {
    conversation_.messages.pop_back();
    fmt::print(stderr, "hadal: error: {}\n", why);
  }

  const ChatFlags& flags_;
  Engine* const engine_;
  Conversation conversation_;
  std::string system_;
};

Status Chat(const ChatFlags& flags) {
  HandleInterrupts();
  ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, OpenEngine(flags.engine, flags.layout));
  if (engine->tokenizer() == nullptr) {
    return Status::InvalidArgument(
        fmt::format("{}: expected a tokenizer.json, which a conversation needs, found none",
                    flags.engine.runner.model_path));
  }
  ChatSession(flags, engine.get()).Run();
  return Status::Ok();
}

}  // namespace

void AddChatCommand(CLI::App* app, CommandBody* body) {
  auto flags = std::make_shared<ChatFlags>();
  CLI::App* command = app->add_subcommand("chat", "Talk with a model in the terminal");
  AddModelArgument(command, &flags->engine.runner.model_path);
  command->add_option("--system", flags->system, "System message");
  command
      ->add_option("--think", flags->think, "Reason before the answer, where the layout knows it")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  AddLayoutOption(command, &flags->layout);
  AddGenerationFlags(command, &flags->generation);
  AddRunnerFlags(command, &flags->engine.runner);
  AddSpeculationFlags(command, &flags->engine);
  command->footer(std::string("In the conversation:\n") + std::string(kHelp));
  command->callback([flags, body] { *body = [flags] { return Chat(*flags); }; });
}

}  // namespace hadal
