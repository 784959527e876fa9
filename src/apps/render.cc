// hadal render: conversations to prompts, line by line.
#include <iostream>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/json_lines.h"
#include "apps/layout_choice.h"
#include "apps/model_path.h"
#include "text/chat_message.h"
#include "text/chat_template.h"
#include "text/python_json.h"
#include "text/tokenizer.h"

namespace hadal {
namespace {

struct RenderFlags {
  std::string model;
  std::string layout;
  bool wants_json = false;
};

Status RenderLine(const Tokenizer& tokenizer, ChatLayout layout, bool wants_json,
                  std::string_view text, const std::string& what) {
  ASSIGN_OR_RETURN(const Json line, ParseJsonKeepingIntegers(text, what));
  ASSIGN_OR_RETURN(const Conversation conversation, ParseConversation(line, what));
  const Result<Prompt> prompt = RenderChat(layout, conversation);
  if (!prompt.ok()) return prompt.status().Annotate(what);
  const std::vector<TokenId> ids = tokenizer.Encode(prompt.value());
  if (!wants_json) {
    std::cout << PromptText(prompt.value()) << fmt::format("\n-- {} tokens\n", ids.size());
    return Status::Ok();
  }
  Json numbers = Json::array();
  for (const TokenId id : ids) numbers.push_back(id.value);
  PrintJsonLine(Json{{"prompt", PromptText(prompt.value())}, {"ids", std::move(numbers)}});
  return Status::Ok();
}

Status RunRender(const RenderFlags& flags) {
  ASSIGN_OR_RETURN(const std::string folder, ModelFolderPath(flags.model));
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::Load(folder));
  ChatLayout layout{};
  if (flags.layout.empty()) {
    ASSIGN_OR_RETURN(const ChatLayoutChoice choice, LayoutOfModel(folder, tokenizer.get()));
    layout = choice.layout;
  } else {
    layout = FindChatLayout(flags.layout).value();
  }
  return ForEachInputLine([&](std::string_view text, const std::string& what) {
    return RenderLine(*tokenizer, layout, flags.wants_json, text, what);
  });
}

}  // namespace

void AddRenderCommand(CLI::App* app, CommandBody* body) {
  CLI::App* command = app->add_subcommand(
      "render",
      "Conversations to prompts. Reads JSON Lines from standard input:\n"
      "{\"messages\": [...], \"tools\": [...], \"options\": {\"add_generation_prompt\": true, "
      "\"thinking\": false}}\n"
      "Tools and options may be left out. Needs only the tokenizer's files and config.json.");
  const auto flags = std::make_shared<RenderFlags>();
  command->add_option("MODEL", flags->model, "Model folder or file (default: the bundled model)");
  AddLayoutOption(command, &flags->layout);
  command->add_flag("--json", flags->wants_json,
                    "One line {\"prompt\": \"...\", \"ids\": [...]} for each line read");
  command->callback([flags, body] { *body = [flags] { return RunRender(*flags); }; });
}

}  // namespace hadal
