#include "server/completion_reply.h"

#include <utility>
#include <vector>

#include "server/token_trace.h"

namespace hadal {
namespace {

Json Head(const ReplyInfo& info) {
  return {{"id", IdWithPrefix("cmpl-", info.id)},
          {"object", "text_completion"},
          {"created", info.created_s},
          {"model", info.model},
          {"system_fingerprint", info.fingerprint}};
}

std::vector<TokenTrace> MakeTraces(const ReplySetting& setting) {
  return std::vector<TokenTrace>(static_cast<size_t>(setting.num_choices),
                                 TokenTrace(setting.tokenizer, false, setting.wants_logprobs));
}

// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}; offsets count bytes of the text.
Json LogprobsJson(const ReplySetting& setting, const std::vector<TracedToken>& tokens) {
  Json texts = Json::array(), logprobs = Json::array(), tops = Json::array(),
       offsets = Json::array();
  for (const TracedToken& traced : tokens) {
    texts.push_back(TokenText(setting.tokenizer, traced.token));
    logprobs.push_back(JsonLogprob(traced.logprob));
    Json top = Json::object();
    for (const TokenLogprob& one : traced.top)
      top[TokenText(setting.tokenizer, one.token)] = JsonLogprob(one.logprob);
    tops.push_back(std::move(top));
    offsets.push_back(traced.text_begin);
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

// The prompt in front of the answer `choice_idx`, where it is wanted.
std::string EchoOf(const ReplySetting& setting, int choice_idx) {
  if (setting.echoes.empty()) return {};
  const int choices_of_prompt = setting.num_choices / setting.num_prompts;
  return setting.echoes[static_cast<size_t>(choice_idx / choices_of_prompt)];
}

class PlainCompletionWriter : public ReplyWriter {
 public:
  explicit PlainCompletionWriter(const ReplySetting& setting)
      : setting_(setting),
        traces_(MakeTraces(setting)),
        texts_(static_cast<size_t>(setting.num_choices)),
        finishes_(texts_.size()) {}

  void Begin(const ResponseHead&, std::string*) override {
    for (int i = 0; i < setting_.num_choices; ++i) texts_[i] = EchoOf(setting_, i);
  }

  void Add(const ResponseChunk& chunk, int first_choice, std::string*) override {
    for (const ResponseToken& token : chunk.tokens)
      traces_[first_choice + token.choice_idx].AddToken(token.token, chunk.top_logprobs);
    for (const ResponsePiece& piece : chunk.pieces) {
      texts_[first_choice + piece.choice_idx] += chunk.TextOf(piece);
      traces_[first_choice + piece.choice_idx].AddText(piece.kind, piece.text_size);
    }
    for (const ResponseEnd& end : chunk.ends) {
      finishes_[first_choice + end.choice_idx] = end.finish;
      usage_.Add(end, 0);
    }
  }

  void End(std::string* out) override {
    Json reply = Head(setting_.info);
    Json& choices = reply["choices"] = Json::array();
    for (int i = 0; i < setting_.num_choices; ++i) {
      choices.push_back(
          {{"text", texts_[i]},
           {"index", i},
           {"logprobs",
            setting_.wants_logprobs ? LogprobsJson(setting_, traces_[i].TakeContent()) : Json()},
           {"finish_reason", OpenAiFinishReason(finishes_[i])}});
    }
    reply["usage"] = usage_.OpenAiJson();
    *out += DumpJson(reply);
  }

 private:
  const ReplySetting setting_;
  std::vector<TokenTrace> traces_;
  std::vector<std::string> texts_;
  std::vector<FinishReason> finishes_;
  UsageSum usage_;
};

class StreamedCompletionWriter : public ReplyWriter {
 public:
  explicit StreamedCompletionWriter(const ReplySetting& setting)
      : setting_(setting), traces_(MakeTraces(setting)) {
    prefix_ = "data: " + DumpJson(Head(setting.info));
    prefix_.pop_back();
  }

  void Begin(const ResponseHead&, std::string* out) override {
    for (int i = 0; i < setting_.num_choices && !setting_.echoes.empty(); ++i)
      AddEvent(i, EchoOf(setting_, i), nullptr, out);
  }

  void Add(const ResponseChunk& chunk, int first_choice, std::string* out) override {
    for (const ResponseToken& token : chunk.tokens)
      traces_[first_choice + token.choice_idx].AddToken(token.token, chunk.top_logprobs);
    for (const ResponsePiece& piece : chunk.pieces) {
      const int choice_idx = first_choice + piece.choice_idx;
      traces_[choice_idx].AddText(piece.kind, piece.text_size);
      AddEvent(choice_idx, chunk.TextOf(piece), nullptr, out);
    }
    for (const ResponseEnd& end : chunk.ends) {
      AddEvent(first_choice + end.choice_idx, "", OpenAiFinishReason(end.finish), out);
      usage_.Add(end, 0);
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
  void AddEvent(int choice_idx, std::string_view text, Json finish_reason, std::string* out) {
    Json logprobs;
    if (setting_.wants_logprobs) {
      const std::vector<TracedToken> tokens = traces_[choice_idx].TakeContent();
      if (!tokens.empty()) logprobs = LogprobsJson(setting_, tokens);
    }
    const Json choice = {{"text", text},
                         {"index", choice_idx},
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

std::unique_ptr<ReplyWriter> MakePlainCompletionWriter(const ReplySetting& setting) {
  return std::make_unique<PlainCompletionWriter>(setting);
}

std::unique_ptr<ReplyWriter> MakeStreamedCompletionWriter(const ReplySetting& setting) {
  return std::make_unique<StreamedCompletionWriter>(setting);
}

}  // namespace hadal
