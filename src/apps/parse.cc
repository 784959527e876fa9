// hadal parse: the model's text, as it arrives, to reasoning, answer and tool calls.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/json_lines.h"
#include "apps/layout_choice.h"
#include "apps/model_path.h"
#include "text/message_parser.h"

namespace hadal {
namespace {

struct ParseFlags {
  std::string model;
  std::string layout;
  bool wants_json = false;
};

// {"reasoning": ...}, {"content": ...} or {"tool_calls": [{"index": ..., "name" or "arguments":
// ...}]}: the keys of the result, so that joining them gives it.
Json DeltaJson(const MessageDelta& delta) {
  switch (delta.kind) {
    case MessageDelta::Kind::kReasoning:
      return {{"reasoning", delta.text}};
    case MessageDelta::Kind::kContent:
      return {{"content", delta.text}};
    case MessageDelta::Kind::kToolCallStart:
    case MessageDelta::Kind::kToolCallArguments:
      break;
  }
  const bool is_start = delta.kind == MessageDelta::Kind::kToolCallStart;
  Json call = {{"index", delta.tool_call_idx}, {is_start ? "name" : "arguments", delta.text}};
  return {{"tool_calls", Json::array({std::move(call)})}};
}

Json MessageJson(const ParsedMessage& message, const std::vector<MessageDelta>& deltas) {
  Json calls = Json::array(), pieces = Json::array();
  for (const ToolCall& call : message.tool_calls) {
    calls.push_back({{"name", call.name}, {"arguments", call.arguments}});
  }
  for (const MessageDelta& delta : deltas) pieces.push_back(DeltaJson(delta));
  return {{"reasoning", message.reasoning},
          {"content", message.content},
          {"tool_calls", std::move(calls)},
          {"deltas", std::move(pieces)}};
}

void PrintMessage(const ParsedMessage& message) {
  if (!message.reasoning.empty()) std::cout << "reasoning  " << DumpJson(message.reasoning) << '\n';
  if (!message.content.empty()) std::cout << "content    " << DumpJson(message.content) << '\n';
  for (const ToolCall& call : message.tool_calls) {
    std::cout << "tool call  " << call.name << ' ' << call.arguments << '\n';
  }
  std::cout << '\n';
}

Result<std::vector<std::string>> ReadChunks(const Json& line, const std::string& what) {
  const bool has_chunks = line.is_object() && line.contains("chunks");
  if (!has_chunks || !line.at("chunks").is_array()) {
    return Status::InvalidArgument(
        fmt::format("{}: chunks: expected a list of strings, found {}", what,
                    has_chunks ? line.at("chunks").type_name() : "nothing"));
  }
  std::vector<std::string> chunks;
  for (const Json& chunk : line.at("chunks")) {
    if (!chunk.is_string()) {
      return Status::InvalidArgument(fmt::format("{}: chunks[{}]: expected a string, found {}",
                                                 what, chunks.size(), chunk.type_name()));
    }
    chunks.push_back(chunk.get<std::string>());
  }
  return chunks;
}

Status ParseLine(ChatLayout layout, bool wants_json, std::string_view text,
                 const std::string& what) {
  ASSIGN_OR_RETURN(const Json line, ParseJson(text, what));
  ASSIGN_OR_RETURN(const std::vector<std::string> chunks, ReadChunks(line, what));
  ASSIGN_OR_RETURN(const bool starts_in_reasoning,
                   ReadBoolOr(line, "starts_in_reasoning", false, what));
  ASSIGN_OR_RETURN(const bool was_cut, ReadBoolOr(line, "cut_by_length", false, what));
  MessageParser parser(layout, starts_in_reasoning);
  std::vector<MessageDelta> deltas;
  for (const std::string& chunk : chunks) parser.Push(chunk, &deltas);
  parser.Finish(was_cut, &deltas);
  if (wants_json) {
    PrintJsonLine(MessageJson(parser.message(), deltas));
  } else {
    PrintMessage(parser.message());
  }
  return Status::Ok();
}

// A model without a tokenizer still says what it is in config.json.
Result<ChatLayout> ParseLayout(const ParseFlags& flags) {
  if (!flags.layout.empty()) return FindChatLayout(flags.layout).value();
  ASSIGN_OR_RETURN(const std::string folder, ModelFolderPath(flags.model));
  const Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::Load(folder);
  if (!tokenizer.ok() && tokenizer.status().code() != StatusCode::kNotFound) {
    return tokenizer.status();
  }
  ASSIGN_OR_RETURN(const ChatLayoutChoice choice,
                   LayoutOfModel(folder, tokenizer.ok() ? tokenizer.value().get() : nullptr));
  return choice.layout;
}

Status RunParse(const ParseFlags& flags) {
  ASSIGN_OR_RETURN(const ChatLayout layout, ParseLayout(flags));
  return ForEachInputLine([&](std::string_view text, const std::string& what) {
    return ParseLine(layout, flags.wants_json, text, what);
  });
}

}  // namespace

void AddParseCommand(CLI::App* app, CommandBody* body) {
  CLI::App* command = app->add_subcommand(
      "parse",
      "The model's text to reasoning, answer and tool calls, as it arrives. Reads JSON Lines from\n"
      "standard input: {\"chunks\": [\"...\"], \"starts_in_reasoning\": false, \"cut_by_length\": "
      "false}\n"
      "The last two may be left out. With --layout no model is read.");
  const auto flags = std::make_shared<ParseFlags>();
  command->add_option("MODEL", flags->model, "Model folder or file (default: the bundled model)");
  AddLayoutOption(command, &flags->layout);
  command->add_flag("--json", flags->wants_json,
                    "One line {\"reasoning\", \"content\", \"tool_calls\", \"deltas\"} for each "
                    "line read");
  command->callback([flags, body] { *body = [flags] { return RunParse(*flags); }; });
}

}  // namespace hadal
