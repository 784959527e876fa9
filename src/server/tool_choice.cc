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

Status ApplyThinking(std::optional<bool> wants_thinking, std::string_view field,
                     const ApiModel& model, ChatOptions* options) {
  if (!wants_thinking) return Status::Ok();
  if (HasThinkingSwitch(model.layout)) {
    options->thinking = *wants_thinking;
  } else if (*wants_thinking != AlwaysThinks(model.layout)) {
    return Status::InvalidArgument(fmt::format(
        "{}: a model of the layout {} {}", field, ChatLayoutName(model.layout),
        *wants_thinking ? "cannot think before it answers" : "always thinks before it answers"));
  }
  return Status::Ok();
}

}  // namespace hadal
