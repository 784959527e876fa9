// Which tools the model is told of, and whether it must call one: the same for all APIs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/generation_request.h"
#include "server/api_call.h"
#include "server/field_reader.h"
#include "text/chat_message.h"

namespace hadal {

struct ToolChoice {
  enum class Mode { kAuto, kNone, kRequired, kNamed };
  Mode mode = Mode::kAuto;
  std::string name;         // of kNamed
  bool allows_many = true;  // calls in one answer
};

// Applies `choice` to a conversation whose tools are those of the request, and to what the engine
// is asked. kInvalidArgument: a tool that is not there, a layout without tools, a call that must
// come while the model thinks first.
Status ApplyToolChoice(const ToolChoice& choice, const ApiModel& model, Conversation* conversation,
                       GenerationRequest* request);

// What a request wants of the reasoning before an answer.
struct ThinkingWish {
  std::optional<bool> is_on;  // none: as the layout does by default
  std::string field;          // that said so
  int max_tokens = -1;        // of the reasoning; -1: no limit
};

// "none", "minimal", ..., "max" of a field like reasoning_effort: off, or on with a budget (minimal
// 512, low 2048, medium 8192 tokens, above no limit).
Status ReadEffort(const FieldReader& fields, std::string_view key, ThinkingWish* wish);

// {"type": "text" | "json_object"}.
Status ReadAnswerFormat(const FieldReader& fields, std::string_view key,
                        GenerationRequest* request);

// Switches thinking on or off in `options` and gives it its budget, or leaves the layout's default.
// kInvalidArgument with the wish's field when the layout does not have what is asked.
Status ApplyThinking(const ThinkingWish& wish, const ApiModel& model, ChatOptions* options,
                     GenerationRequest* request);

// The last message must be one that the model answers, or goes on with. kInvalidArgument, beginning
// with `field`.
Status CheckLastMessage(std::string_view field, const ApiModel& model,
                        const std::vector<ChatMessage>& messages);

}  // namespace hadal
