// From what the engine gives to the bytes of a reply. One implementation for each API and manner
// (plain, streamed); pure: no sockets, no engine, no threads.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "engine/response_stream.h"
#include "server/api_call.h"
#include "server/api_error.h"
#include "text/tokenizer.h"

namespace hadal {

class ReplyWriter {
 public:
  virtual ~ReplyWriter() = default;

  virtual ApiDialect dialect() const { return ApiDialect::kOpenAi; }

  // What a silent stream sends now and then; clients skip it.
  virtual std::string_view keep_alive() const { return ": keep-alive\n\n"; }

  // Appends what stands before the answers. `head` is that of the first prompt.
  virtual void Begin(const ResponseHead& head, std::string* out) = 0;

  // Appends what a chunk decides; a plain reply only takes it in. `first_choice` is added to the
  // chunk's choices: answers to several prompts are numbered through.
  virtual void Add(const ResponseChunk& chunk, int first_choice, std::string* out) = 0;

  // Appends the end: all choices have ended well.
  virtual void End(std::string* out) = 0;
};

// What all writers are made from.
struct ReplySetting {
  ReplyInfo info;
  const Tokenizer* tokenizer = nullptr;  // null: ids only
  int num_choices = 1;                   // of all prompts together
  int num_prompts = 1;
  bool wants_usage = false;  // of a stream
  bool wants_logprobs = false;
  std::vector<std::string> echoes;  // texts before the answers; empty: none
  Json repeated = Json::object();   // fields that the reply gives back
};

// "stop", "length", "tool_calls".
std::string_view OpenAiFinishReason(FinishReason finish);

// "req_12ab" gives "chatcmpl-12ab", ...: ids of replies and their parts are made from the
// request's.
std::string IdWithPrefix(std::string_view prefix, std::string_view request_id);

// Usage of several answers: the prompt of each choice whose index in its response is 0 counts.
class UsageSum {
 public:
  void Add(const ResponseEnd& end, int num_reasoning_tokens);
  const Usage& usage() const { return usage_; }
  int num_reasoning_tokens() const { return num_reasoning_tokens_; }
  // In OpenAI's fields and DeepSeek's.
  Json OpenAiJson() const;

 private:
  Usage usage_;
  int num_reasoning_tokens_ = 0;
};

}  // namespace hadal
