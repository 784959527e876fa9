#include "server/messages_reply.h"

#include <utility>

#include <fmt/format.h>

#include "engine/response_collector.h"
#include "text/python_json.h"

namespace hadal {
namespace {

std::string_view StopReason(FinishReason finish, bool met_stop_sequence) {
  switch (finish) {
    case FinishReason::kLength:
      return "max_tokens";
    case FinishReason::kToolCalls:
      return "tool_use";
    default:
      return met_stop_sequence ? "stop_sequence" : "end_turn";
  }
}

Json StopSequence(const ResponseEnd& end) {
  return end.stop_string.empty() ? Json() : Json(end.stop_string);
}

// Anthropic counts what the cache gave beside the input, not in it.
Json UsageJson(const Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"output_tokens", usage.completion_tokens}};
}

std::string CallId(const ReplyInfo& info, int call_idx) {
  return fmt::format("{}_{}", IdWithPrefix("toolu_", info.id), call_idx);
}

Json MessageJson(const ReplyInfo& info, const Usage& usage) {
  return {{"id", IdWithPrefix("msg_", info.id)},
          {"type", "message"},
          {"role", "assistant"},
          {"model", info.model},
          {"content", Json::array()},
          {"stop_reason", nullptr},
          {"stop_sequence", nullptr},
          {"usage", UsageJson(usage)}};
}

// The arguments as the object that this API wants. What a limit cut off, or a model spelled wrong,
// is no object: it is given as text under a name of its own instead of being lost.
Json InputJson(const std::string& arguments) {
  Result<Json> parsed = ParseJsonKeepingIntegers(arguments.empty() ? "{}" : arguments, "arguments");
  if (parsed.ok() && parsed->is_object()) return std::move(parsed).value();
  return {{"_raw_arguments", arguments}};
}

// Json with integers of any length, as ParseJsonKeepingIntegers reads them.
std::string Dump(const Json& value) { return DumpPythonJson(value); }

class PlainMessagesWriter : public ReplyWriter {
 public:
  explicit PlainMessagesWriter(const ReplySetting& setting) : setting_(setting), collector_(1) {}

  ApiDialect dialect() const override { return ApiDialect::kAnthropic; }
  void Begin(const ResponseHead&, std::string*) override {}
  void Add(const ResponseChunk& chunk, int, std::string*) override { collector_.Add(chunk); }

  void End(std::string* out) override {
    const CollectedChoice& choice = collector_.choices()[0];
    Json message = MessageJson(setting_.info, choice.end.usage);
    Json& content = message["content"];
    if (!choice.reasoning.empty())
      content.push_back({{"type", "thinking"}, {"thinking", choice.reasoning}, {"signature", ""}});
    if (!choice.content.empty()) content.push_back({{"type", "text"}, {"text", choice.content}});
    for (size_t i = 0; i < choice.tool_calls.size(); ++i) {
      const ToolCall& call = choice.tool_calls[i];
      content.push_back({{"type", "tool_use"},
                         {"id", CallId(setting_.info, static_cast<int>(i))},
                         {"name", call.name},
                         {"input", InputJson(call.arguments)}});
    }
    message["stop_reason"] = StopReason(choice.end.finish, !choice.end.stop_string.empty());
    message["stop_sequence"] = StopSequence(choice.end);
    *out += Dump(message);
  }

 private:
  const ReplySetting setting_;
  ResponseCollector collector_;
};

class StreamedMessagesWriter : public ReplyWriter {
 public:
  explicit StreamedMessagesWriter(const ReplySetting& setting) : setting_(setting) {}

  ApiDialect dialect() const override { return ApiDialect::kAnthropic; }
  std::string_view keep_alive() const override {
    return "event: ping\ndata: {\"type\":\"ping\"}\n\n";
  }

  void Begin(const ResponseHead& head, std::string* out) override {
    Usage usage;  // what is cached is known at the end only
    usage.prompt_tokens = static_cast<int>(head.prompt.size());
    AddEvent("message_start", {{"message", MessageJson(setting_.info, usage)}}, out);
    out->append(keep_alive());
  }

  void Add(const ResponseChunk& chunk, int, std::string* out) override {
    for (const ResponsePiece& piece : chunk.pieces) AddPiece(piece, chunk.TextOf(piece), out);
    for (const ResponseEnd& end : chunk.ends) {
      CloseBlock(out);
      AddEvent("message_delta",
               {{"delta",
                 {{"stop_reason", StopReason(end.finish, !end.stop_string.empty())},
                  {"stop_sequence", StopSequence(end)}}},
                {"usage", UsageJson(end.usage)}},
               out);
    }
  }

  void End(std::string* out) override { AddEvent("message_stop", Json::object(), out); }

 private:
  enum class Block { kNone, kThinking, kText, kToolUse };

  void AddPiece(const ResponsePiece& piece, std::string_view text, std::string* out) {
    switch (piece.kind) {
      case MessageDelta::Kind::kReasoning:
        OpenBlock(Block::kThinking, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}},
                  out);
        return AddDelta({{"type", "thinking_delta"}, {"thinking", text}}, out);
      case MessageDelta::Kind::kContent:
        OpenBlock(Block::kText, {{"type", "text"}, {"text", ""}}, out);
        return AddDelta({{"type", "text_delta"}, {"text", text}}, out);
      case MessageDelta::Kind::kToolCallStart:
        CloseBlock(out);
        return OpenBlock(Block::kToolUse,
                         {{"type", "tool_use"},
                          {"id", CallId(setting_.info, piece.tool_call_idx)},
                          {"name", text},
                          {"input", Json::object()}},
                         out);
      case MessageDelta::Kind::kToolCallArguments:
        return AddDelta({{"type", "input_json_delta"}, {"partial_json", text}}, out);
    }
  }

  void OpenBlock(Block kind, Json block, std::string* out) {
    if (kind == open_) return;
    CloseBlock(out);
    open_ = kind;
    AddEvent("content_block_start", {{"index", num_blocks_}, {"content_block", std::move(block)}},
             out);
  }

  void CloseBlock(std::string* out) {
    if (open_ == Block::kNone) return;
    if (open_ == Block::kThinking) AddDelta({{"type", "signature_delta"}, {"signature", ""}}, out);
    open_ = Block::kNone;
    AddEvent("content_block_stop", {{"index", num_blocks_++}}, out);
  }

  void AddDelta(Json delta, std::string* out) {
    AddEvent("content_block_delta", {{"index", num_blocks_}, {"delta", std::move(delta)}}, out);
  }

  static void AddEvent(std::string_view type, const Json& fields, std::string* out) {
    Json event = {{"type", type}};
    event.update(fields);
    *out += fmt::format("event: {}\ndata: {}\n\n", type, DumpJson(event));
  }

  const ReplySetting setting_;
  Block open_ = Block::kNone;
  int num_blocks_ = 0;  // closed ones: the index of the one that is open
};

}  // namespace

std::unique_ptr<ReplyWriter> MakePlainMessagesWriter(const ReplySetting& setting) {
  return std::make_unique<PlainMessagesWriter>(setting);
}

std::unique_ptr<ReplyWriter> MakeStreamedMessagesWriter(const ReplySetting& setting) {
  return std::make_unique<StreamedMessagesWriter>(setting);
}

}  // namespace hadal
