// A model that answers: the only public C++ interface of hadal.
//   ASSIGN_OR_RETURN(auto engine, Engine::Open({.runner = {.model_path = path}}));
//   ASSIGN_OR_RETURN(auto stream, engine->Submit({.input = "Once upon"}));
//   ResponseChunk chunk;
//   while (stream->Next(&chunk)) ...
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/generation_request.h"
#include "engine/metrics.h"
#include "engine/response_stream.h"
#include "engine/step_loop.h"
#include "engine/trace_writer.h"
#include "runner/model_runner.h"
#include "text/chat_layout.h"
#include "text/tokenizer.h"
#include "text/volatile_lines.h"

namespace hadal {

struct EngineOptions {
  RunnerOptions runner;
  Speculation speculation;                       // of requests that do not say
  std::string tokenizer_folder;                  // empty: runner.model_path
  std::string draft_tokenizer_folder;            // empty: runner.drafting.draft_model_path
  std::optional<ChatLayout> layout;              // none: chosen from the model's own files
  int max_pending_sequences = 4096;              // running and waiting; more are refused
  int64_t max_pending_prompt_tokens = 16 << 20;  // of these; more are refused, one request excepted
  // How long a step may take in which someone's answer goes on, so that nobody waits for a
  // stranger's prompt: the prompt's chunk is cut to it. 0: no limit but --chunk.
  int max_step_ms = 250;
  int max_prompt_step_ms = 0;  // the same for steps that only read prompts
  int aging_ms = 10'000;       // a sequence that waits as long is worth one step of priority more
  // Memory for the cache rows of sequences that must give their blocks back for a while. Those for
  // which it does not suffice are computed again.
  int64_t max_saved_bytes = int64_t{1} << 30;
  int64_t max_unread_bytes = 16 << 20;  // of one response, before its reader counts as gone
  // Folder for the cache rows of prompts, kept across restarts; empty: none.
  std::string cache_dir;
  int64_t max_cache_dir_bytes = int64_t{10} << 30;
  VolatileLines volatile_lines = VolatileLines::kKeep;  // of conversations
  std::string trace_path;                               // file of spans (TraceWriter); empty: none
  ClockUs clock = &SteadyClockUs;
};

class Engine {
 public:
  // Loads the model; a missing tokenizer is no error. Errors as CreateRunner, Tokenizer::Load,
  // CheckSameVocabulary, CheckSpeculation, PrefixStore::Open and TraceWriter::Open.
  static Result<std::unique_ptr<Engine>> Open(const EngineOptions& options);

  // From parts, for tests and other runners. `tokenizer` may be null: then only ids come and go;
  // `store` and `trace` may be null: no prefixes on disk, no spans.
  Engine(const EngineOptions& options, std::unique_ptr<ModelRunner> runner,
         std::unique_ptr<Tokenizer> tokenizer, std::unique_ptr<PrefixStore> store = nullptr,
         std::unique_ptr<TraceWriter> trace = nullptr);

  // Ends what is not finished with kCancelled.
  ~Engine();

  // Any thread. kInvalidArgument: a field of the request, or a prompt that is too long;
  // kResourceExhausted: too many wait already, to be tried again after RetryAfterSeconds();
  // kUnsupported: text without a tokenizer.
  Result<std::shared_ptr<ResponseStream>> Submit(const GenerationRequest& request);

  // Any thread. Ends all choices of the response within one step; what has ended stays as it is.
  void Cancel(const ResponseStream& response);

  // When a request that was refused for want of room may be tried again: 1 to 60, from how fast
  // sequences have been ending.
  int RetryAfterSeconds() const;

  const ModelInfo& info() const { return runner_->info(); }
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }  // may be null
  const ChatLayoutChoice& layout() const { return layout_; }
  // Whether people expect the model to be asked in its chat layout: it has a chat template, or is
  // of the version that was published without one.
  bool is_chat_model() const;
  // Of info(): the model's own sampling settings, greedy without any.
  const SamplingParams& default_sampling() const { return info().default_sampling; }
  const Speculation& default_speculation() const { return options_.speculation; }
  // Any thread.
  MetricsSnapshot metrics() const;
  // Any thread. What this machine was measured to read from memory, for the metrics.
  void SetReadLimit(double bytes_per_s);

 private:
  struct EncodedPrompt {
    std::vector<TokenId> tokens;
    bool is_chat = false;
    bool starts_in_reasoning = false;
  };
  int num_tokens() const;
  Status TakeRoom(const GenerationRequest& request, int64_t num_prompt_tokens);
  Result<EncodedPrompt> Encode(const GenerationRequest& request) const;
  Result<EncodedPrompt> EncodeText(const std::string& text) const;
  Result<EncodedPrompt> EncodeConversation(const Conversation& conversation,
                                           const Prompt& opening) const;
  std::unique_ptr<AnswerConstraint> MakeConstraint(const GenerationRequest& request,
                                                   const EncodedPrompt& prompt,
                                                   const std::vector<TokenId>& end_tokens) const;
  std::vector<TokenId> StopTokens(const GenerationRequest& request) const;
  std::vector<Submission> Split(const GenerationRequest& request, const EncodedPrompt& prompt,
                                const std::shared_ptr<ResponseStream>& stream) const;

  const EngineOptions options_;
  const std::unique_ptr<ModelRunner> runner_;
  const std::unique_ptr<Tokenizer> tokenizer_;
  const std::unique_ptr<PrefixStore> store_;
  const std::unique_ptr<TraceWriter> trace_;
  ChatLayoutChoice layout_;
  SchedulerLimits limits_;
  Metrics metrics_;
  std::atomic<int64_t> next_id_{0};
  std::unique_ptr<StepLoop> loop_;
};

}  // namespace hadal
