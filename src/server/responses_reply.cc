#include "server/responses_reply.h"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "server/token_trace.h"

namespace hadal {
namespace {

// Builds the output item by item. A streamed reply is the same with its events written on the way.
class ResponsesWriter : public ReplyWriter {
 public:
  ResponsesWriter(const ReplySetting& setting, bool is_streamed)
      : setting_(setting), is_streamed_(is_streamed) {}

  void Begin(const ResponseHead& head, std::string* out) override {
    trace_.emplace(setting_.tokenizer, head.starts_in_reasoning, setting_.wants_logprobs);
    AddEvent("response.created", {{"response", ResponseJson("in_progress")}}, out);
    AddEvent("response.in_progress", {{"response", ResponseJson("in_progress")}}, out);
  }

  void Add(const ResponseChunk& chunk, int, std::string* out) override {
    for (const ResponseToken& token : chunk.tokens)
      trace_->AddToken(token.token, chunk.top_logprobs);
    for (const ResponsePiece& piece : chunk.pieces) {
      trace_->AddText(piece.kind, piece.text_size);
      AddPiece(piece, chunk.TextOf(piece), out);
    }
    for (const ResponseEnd& end : chunk.ends) {
      end_ = end;
      const bool is_cut = end.finish == FinishReason::kLength;
      CloseItem(is_cut ? "incomplete" : "completed", out);
    }
  }

  void End(std::string* out) override {
    const bool is_cut = end_.finish == FinishReason::kLength;
    const char* const status = is_cut ? "incomplete" : "completed";
    if (is_streamed_) {
      AddEvent(fmt::format("response.{}", status), {{"response", ResponseJson(status)}}, out);
    } else {
      *out += DumpJson(ResponseJson(status));
    }
  }

 private:
  enum class Item { kNone, kReasoning, kMessage, kCall };

  Json ResponseJson(std::string_view status) const {
    const bool is_over = status != "in_progress";
    Json response = {{"id", IdWithPrefix("resp_", setting_.info.id)},
                     {"object", "response"},
                     {"created_at", setting_.info.created_s},
                     {"status", status},
                     {"error", nullptr},
                     {"incomplete_details",
                      status == "incomplete" ? Json{{"reason", "max_output_tokens"}} : Json()},
                     {"model", setting_.info.model},
                     {"output", output_}};
    response.update(setting_.repeated);
    response["usage"] = is_over ? UsageJson() : Json();
    return response;
  }

  Json UsageJson() const {
    const Usage& usage = end_.usage;
    return {{"input_tokens", usage.prompt_tokens},
            {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
            {"output_tokens", usage.completion_tokens},
            {"output_tokens_details", {{"reasoning_tokens", trace_->num_reasoning_tokens()}}},
            {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
  }

  void AddPiece(const ResponsePiece& piece, std::string_view text, std::string* out) {
    switch (piece.kind) {
      case MessageDelta::Kind::kReasoning:
        OpenItem(Item::kReasoning, {}, out);
        text_ += text;
        return AddDelta("response.reasoning_text.delta", text, out);
      case MessageDelta::Kind::kContent:
        OpenItem(Item::kMessage, {}, out);
        text_ += text;
        return AddDelta("response.output_text.delta", text, out);
      case MessageDelta::Kind::kToolCallStart:
        CloseItem("completed", out);
        call_idx_ = piece.tool_call_idx;
        return OpenItem(Item::kCall, text, out);
      case MessageDelta::Kind::kToolCallArguments:
        text_ += text;
        return AddDelta("response.function_call_arguments.delta", text, out);
    }
  }

  // The item as far as it is known. `name` of a call.
  Json ItemJson(std::string_view status) const {
    switch (open_) {
      case Item::kReasoning:
        return {{"type", "reasoning"},
                {"id", item_id_},
                {"summary", Json::array()},
                {"content", status == "in_progress" ? Json::array() : Json::array({PartJson()})},
                {"status", status}};
      case Item::kMessage:
        return {{"type", "message"},
                {"id", item_id_},
                {"status", status},
                {"role", "assistant"},
                {"content", status == "in_progress" ? Json::array() : Json::array({PartJson()})}};
      default:
        return {
            {"type", "function_call"},
            {"id", item_id_},
            {"call_id", fmt::format("{}_0_{}", IdWithPrefix("call_", setting_.info.id), call_idx_)},
            {"name", name_},
            {"arguments", text_},
            {"status", status}};
    }
  }

  Json PartJson() const {
    if (open_ == Item::kReasoning) return {{"type", "reasoning_text"}, {"text", text_}};
    return {{"type", "output_text"},
            {"text", text_},
            {"annotations", Json::array()},
            {"logprobs", logprobs_}};
  }

  void OpenItem(Item kind, std::string_view name, std::string* out) {
    if (kind == open_) return;
    CloseItem("completed", out);
    static constexpr const char* kPrefixes[] = {"", "rs_", "msg_", "fc_"};
    open_ = kind;
    name_ = name;
    text_.clear();
    logprobs_ = Json::array();
    item_id_ = fmt::format(
        "{}_{}", IdWithPrefix(kPrefixes[static_cast<int>(kind)], setting_.info.id), output_.size());
    AddEvent("response.output_item.added",
             {{"output_index", output_.size()}, {"item", ItemJson("in_progress")}}, out);
    if (kind == Item::kMessage) AddPartEvent("response.content_part.added", out);
  }

  void CloseItem(std::string_view status, std::string* out) {
    if (open_ == Item::kNone) return;
    TakeLogprobs();
    if (open_ == Item::kReasoning) {
      AddTextEvent("response.reasoning_text.done", "text", text_, out);
    } else if (open_ == Item::kMessage) {
      AddTextEvent("response.output_text.done", "text", text_, out);
      AddPartEvent("response.content_part.done", out);
    } else {
      AddTextEvent("response.function_call_arguments.done", "arguments", text_, out);
    }
    Json item = ItemJson(status);
    AddEvent("response.output_item.done", {{"output_index", output_.size()}, {"item", item}}, out);
    output_.push_back(std::move(item));
    open_ = Item::kNone;
  }

  Json TakeLogprobs() {
    if (!setting_.wants_logprobs || open_ != Item::kMessage) return Json::array();
    Json taken = ChatLogprobsJson(setting_.tokenizer, trace_->TakeContent());
    for (const Json& one : taken) logprobs_.push_back(one);
    return taken;
  }

  void AddDelta(std::string_view type, std::string_view text, std::string* out) {
    AddTextEvent(type, "delta", text, out);
  }

  void AddTextEvent(std::string_view type, const char* key, std::string_view text,
                    std::string* out) {
    Json fields = {{"item_id", item_id_}, {"output_index", output_.size()}};
    if (open_ != Item::kCall) fields["content_index"] = 0;
    if (open_ == Item::kCall && type.ends_with("done")) fields["name"] = name_;
    fields[key] = text;
    if (open_ == Item::kMessage)
      fields["logprobs"] = type.ends_with("done") ? logprobs_ : TakeLogprobs();
    AddEvent(type, fields, out);
  }

  void AddPartEvent(std::string_view type, std::string* out) {
    AddEvent(type,
             {{"item_id", item_id_},
              {"output_index", output_.size()},
              {"content_index", 0},
              {"part", PartJson()}},
             out);
  }

  void AddEvent(std::string_view type, const Json& fields, std::string* out) {
    if (!is_streamed_) return;
    Json event = {{"type", type}, {"sequence_number", num_events_++}};
    event.update(fields);
    *out += fmt::format("event: {}\ndata: {}\n\n", type, DumpJson(event));
  }

  const ReplySetting setting_;
  const bool is_streamed_;
  std::optional<TokenTrace> trace_;
  Json output_ = Json::array();  // items that are whole
  Item open_ = Item::kNone;      // the one that grows, and what it has so far
  std::string item_id_, name_, text_;
  Json logprobs_ = Json::array();
  int call_idx_ = 0, num_events_ = 0;
  ResponseEnd end_;
};

}  // namespace

std::unique_ptr<ReplyWriter> MakePlainResponsesWriter(const ReplySetting& setting) {
  return std::make_unique<ResponsesWriter>(setting, false);
}

std::unique_ptr<ReplyWriter> MakeStreamedResponsesWriter(const ReplySetting& setting) {
  return std::make_unique<ResponsesWriter>(setting, true);
}

}  // namespace hadal
