#include "server/chat_reply.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/response_collector.h"
#include "server/token_trace.h"

namespace hadal {
namespace {

std::string CallId(const ReplyInfo& info, int choice_idx, int call_idx) {
  return fmt::format("{}_{}_{}", IdWithPrefix("call_", info.id), choice_idx, call_idx);
}

Json Head(const ReplyInfo& info, std::string_view object) {
  return {{"id", IdWithPrefix("chatcmpl-", info.id)},
          {"object", object},
          {"created", info.created_s},
          {"model", info.model},
          {"system_fingerprint", info.fingerprint}};
}

std::vector<TokenTrace> MakeTraces(const ReplySetting& setting, const ResponseHead& head) {
  return std::vector<TokenTrace>(
      static_cast<size_t>(setting.num_choices),
      TokenTrace(setting.tokenizer, head.starts_in_reasoning, setting.wants_logprobs));
}

// The chunk's tokens and text, for log-probabilities and the count of reasoning.
void Trace(const ResponseChunk& chunk, int first_choice, std::vector<TokenTrace>* traces) {
  for (const ResponseToken& token : chunk.tokens)
    (*traces)[first_choice + token.choice_idx].AddToken(token.token, chunk.top_logprobs);
  for (const ResponsePiece& piece : chunk.pieces)
    (*traces)[first_choice + piece.choice_idx].AddText(piece.kind, piece.text_size);
}

// Null when there is nothing to say.
Json LogprobsJson(const Tokenizer* tokenizer, TokenTrace* trace) {
  const std::vector<TracedToken> content = trace->TakeContent();
  const std::vector<TracedToken> reasoning = trace->TakeReasoning();
  if (content.empty() && reasoning.empty()) return nullptr;
  Json logprobs = {{"content", ChatLogprobsJson(tokenizer, content)}, {"refusal", nullptr}};
  if (!reasoning.empty()) logprobs["reasoning_content"] = ChatLogprobsJson(tokenizer, reasoning);
  return logprobs;
}

class PlainChatWriter : public ReplyWriter {
 public:
  explicit PlainChatWriter(const ReplySetting& setting)
      : setting_(setting), collector_(setting.num_choices) {}

  void Begin(const ResponseHead& head, std::string*) override {
    traces_ = MakeTraces(setting_, head);
  }

  void Add(const ResponseChunk& chunk, int first_choice, std::string*) override {
    collector_.Add(chunk);
    Trace(chunk, first_choice, &traces_);
  }

  void End(std::string* out) override {
    Json reply = Head(setting_.info, "chat.completion");
    UsageSum usage;
    Json& choices = reply["choices"] = Json::array();
    for (int i = 0; i < setting_.num_choices; ++i) {
      const CollectedChoice& choice = collector_.choices()[i];
      choices.push_back(
          {{"index", i},
           {"message", MessageJson(choice, i)},
           {"logprobs",
            setting_.wants_logprobs ? LogprobsJson(setting_.tokenizer, &traces_[i]) : Json()},
           {"finish_reason", OpenAiFinishReason(choice.end.finish)}});
      usage.Add(choice.end, traces_[i].num_reasoning_tokens());
    }
    reply["usage"] = usage.OpenAiJson();
    *out += DumpJson(reply);
  }

 private:
  Json MessageJson(const CollectedChoice& choice, int choice_idx) const {
    const bool has_calls = !choice.tool_calls.empty();
    Json message = {{"role", "assistant"}};
    message["content"] = has_calls && choice.content.empty() ? Json() : Json(choice.content);
    if (!choice.reasoning.empty()) message["reasoning_content"] = choice.reasoning;
    for (size_t i = 0; i < choice.tool_calls.size(); ++i) {
      const ToolCall& call = choice.tool_calls[i];
      message["tool_calls"].push_back(
          {{"id", CallId(setting_.info, choice_idx, static_cast<int>(i))},
           {"type", "function"},
           {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
    }
    return message;
  }

  const ReplySetting setting_;
  ResponseCollector collector_;
  std::vector<TokenTrace> traces_;
};

class StreamedChatWriter : public ReplyWriter {
 public:
  explicit StreamedChatWriter(const ReplySetting& setting) : setting_(setting) {
    // All chunks begin alike: the braces of the head stay open.
    prefix_ = "data: " + DumpJson(Head(setting.info, "chat.completion.chunk"));
    prefix_.pop_back();
  }

  void Begin(const ResponseHead& head, std::string* out) override {
    traces_ = MakeTraces(setting_, head);
    for (int i = 0; i < setting_.num_choices; ++i)
      AddEvent(i, {{"role", "assistant"}, {"content", ""}}, nullptr, nullptr, out);
  }

  void Add(const ResponseChunk& chunk, int first_choice, std::string* out) override {
    Trace(chunk, first_choice, &traces_);
    for (const ResponsePiece& piece : chunk.pieces) {
      const int choice_idx = first_choice + piece.choice_idx;
      AddEvent(choice_idx, DeltaJson(piece, chunk.TextOf(piece), choice_idx),
               TakeLogprobs(choice_idx), nullptr, out);
    }
    for (const ResponseEnd& end : chunk.ends) {
      const int choice_idx = first_choice + end.choice_idx;
      AddEvent(choice_idx, Json::object(), TakeLogprobs(choice_idx), OpenAiFinishReason(end.finish),
               out);
      usage_.Add(end, traces_[choice_idx].num_reasoning_tokens());
    }
  }

  void End(std::string* out) override {
    if (setting_.wants_usage) {
      out->append(prefix_).append(",\"choices\":[],\"usage\":");
      out->append(DumpJson(usage_.OpenAiJson())).append("}\n\n");
    }
    out->append("data: [DONE]\n\n");
  }

 private:
  Json DeltaJson(const ResponsePiece& piece, std::string_view text, int choice_idx) const {
    switch (piece.kind) {
      case MessageDelta::Kind::kReasoning:
        return {{"reasoning_content", text}};
      case MessageDelta::Kind::kContent:
        return {{"content", text}};
      case MessageDelta::Kind::kToolCallStart:
        return {{"tool_calls",
                 Json::array({{{"index", piece.tool_call_idx},
                               {"id", CallId(setting_.info, choice_idx, piece.tool_call_idx)},
                               {"type", "function"},
                               {"function", {{"name", text}, {"arguments", ""}}}}})}};
      case MessageDelta::Kind::kToolCallArguments:
        return {{"tool_calls", Json::array({{{"index", piece.tool_call_idx},
                                             {"function", {{"arguments", text}}}}})}};
    }
    return Json::object();
  }

  Json TakeLogprobs(int choice_idx) {
    if (!setting_.wants_logprobs) return nullptr;
    return LogprobsJson(setting_.tokenizer, &traces_[choice_idx]);
  }

  void AddEvent(int choice_idx, Json delta, Json logprobs, Json finish_reason, std::string* out) {
    const Json choice = {{"index", choice_idx},
                         {"delta", std::move(delta)},
                         {"logprobs", std::move(logprobs)},
                         {"finish_reason", std::move(finish_reason)}};
    out->append(prefix_).append(",\"choices\":[").append(DumpJson(choice)).append("]");
    if (setting_.wants_usage) out->append(",\"usage\":null");
    out->append("}\n\n");
  }

  const ReplySetting setting_;
  std::string prefix_;
  std::vector<TokenTrace> traces_;
  UsageSum usage_;
};

}  // namespace

std::unique_ptr<ReplyWriter> MakePlainChatWriter(const ReplySetting& setting) {
  return std::make_unique<PlainChatWriter>(setting);
}

std::unique_ptr<ReplyWriter> MakeStreamedChatWriter(const ReplySetting& setting) {
  return std::make_unique<StreamedChatWriter>(setting);
}

}  // namespace hadal
