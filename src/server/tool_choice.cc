#include "server/tool_choice.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/quote.h"
#include "text/chat_template.h"

namespace hadal {
namespace {

std::string NameOf(const Json& tool) { return tool.at("function").value("name", ""); }

}  // namespace

Status ApplyToolChoice(const ToolChoice& choice, const ApiModel& model, Conversation* conversation,
                       GenerationRequest* request) {
  using Mode = ToolChoice::Mode;
  std::vector<Json>& tools = conversation->tools;
  const bool must_call = choice.mode == Mode::kRequired || choice.mode == Mode::kNamed;
  if (tools.empty()) {
    if (must_call)
      return Status::InvalidArgument("tool_choice: expected tools to choose from, found none");
    // Where the layout lists tools, a call that nobody offered is no call.
    if (WritesTools(model.layout)) request->max_tool_calls = 0;
    return Status::Ok();
  }
  if (!WritesTools(model.layout)) {
    return Status::InvalidArgument(fmt::format(
        "tools: the layout {} of this model has no place for a list of tools; describe them in the "
        "system message",
        ChatLayoutName(model.layout)));
  }
  if (choice.mode == Mode::kNone) {
    tools.clear();
    request->max_tool_calls = 0;
    return Status::Ok();
  }
  if (!choice.allows_many) request->max_tool_calls = 1;
  if (!must_call) return Status::Ok();
  std::string name = choice.name;
  if (choice.mode == Mode::kNamed &&
      std::ranges::none_of(tools, [&](const Json& tool) { return NameOf(tool) == name; })) {
    return Status::InvalidArgument(fmt::format(
        "tool_choice: expected the name of one of the tools, found {}", Quoted(name, 64)));
  }
  if (choice.mode == Mode::kRequired && tools.size() == 1) name = NameOf(tools[0]);
  if (conversation->options.thinking) {
    return Status::InvalidArgument(
        "tool_choice: expected auto or none while the model thinks, found a call that must come; "
        "switch thinking off");
  }
  if (!conversation->messages.empty() && conversation->messages.back().is_prefix) {
    return Status::InvalidArgument(
        "tool_choice: expected auto or none where the last message is a prefix, found a call that "
        "must come");
  }
  request->opening = *ToolCallOpening(model.layout, name);
  return Status::Ok();
}

Status ReadEffort(const FieldReader& fields, std::string_view key, ThinkingWish* wish) {
  static constexpr std::pair<std::string_view, int> kBudgets[] = {
      {"none", -1}, {"minimal", 512}, {"low", 2048}, {"medium", 8192},
      {"high", -1}, {"xhigh", -1},    {"max", -1}};
  std::string effort;
  RETURN_IF_ERROR(fields.Text(key, &effort));
  if (fields.Find(key) == nullptr) return Status::Ok();
  for (const auto& [name, max_tokens] : kBudgets) {
    if (name != effort) continue;
    *wish = {.is_on = effort != "none", .field = fields.PathOf(key), .max_tokens = max_tokens};
    return Status::Ok();
  }
  return fields.Mismatch(key, "none, minimal, low, medium, high, xhigh or max");
}

Status ReadAnswerFormat(const FieldReader& fields, std::string_view key,
                        GenerationRequest* request) {
  ASSIGN_OR_RETURN(const Json* format, fields.Object(key));
  if (format == nullptr) return Status::Ok();
  const FieldReader inner(*format, fields.PathOf(key));
  const Json* type = inner.Find("type");
  if (type != nullptr && *type == "json_schema") {
    return Status::InvalidArgument(
        fmt::format("{}: expected text or json_object, found json_schema, which is not available "
                    "in this version",
                    inner.PathOf("type")));
  }
  RETURN_IF_ERROR(inner.Only("type", {"text", "json_object"}));
  if (type == nullptr) return inner.Mismatch("type", "text or json_object");
  request->is_json = *type == "json_object";
  return Status::Ok();
}

Status ApplyThinking(const ThinkingWish& wish, const ApiModel& model, ChatOptions* options,
                     GenerationRequest* request) {
  const bool always_thinks = AlwaysThinks(model.layout);
  if (wish.is_on && HasThinkingSwitch(model.layout)) {
    options->thinking = *wish.is_on;
  } else if (wish.is_on && *wish.is_on != always_thinks) {
    return Status::InvalidArgument(fmt::format(
        "{}: a model of the layout {} {}", wish.field, ChatLayoutName(model.layout),
        *wish.is_on ? "cannot think before it answers" : "always thinks before it answers"));
  }
  if (options->thinking || always_thinks) request->max_reasoning_tokens = wish.max_tokens;
  return Status::Ok();
}

Status CheckLastMessage(std::string_view field, const ApiModel& model,
                        const std::vector<ChatMessage>& messages) {
  const ChatMessage& last = messages.back();
  // The layouts that write tools put the assistant's mark behind a question, not at the end.
  const bool needs_question = last.role == "system" && WritesTools(model.layout);
  if (!needs_question && (last.role != "assistant" || last.is_prefix)) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("{}: expected a last message of user or tool, or of assistant with \"prefix\": "
                  "true, found one of {}",
                  field, last.role));
}

}  // namespace hadal
