#include "engine/engine.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "base/random.h"
#include "cache/prefix_index.h"
#include "engine/draft_vocabulary.h"
#include "text/chat_template.h"

namespace hadal {
namespace {

// Ends a turn in a few checkpoints that were tuned for completion (specification, 9.5).
constexpr std::string_view kEndOfTurnToken = "<|EOT|>";

ChatLayoutChoice ChooseLayout(const EngineOptions& options, const ModelInfo& info,
                              const Tokenizer* tokenizer) {
  if (options.layout) return {*options.layout, "asked for"};
  const bool has_think_tokens = tokenizer != nullptr && tokenizer->FindAddedToken("<think>");
  return ChooseChatLayout(tokenizer == nullptr ? "" : tokenizer->chat_template(), info.model_type,
                          has_think_tokens);
}

uint64_t DrawSeed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

// Choices after the first have seeds of their own.
uint64_t SeedOfChoice(uint64_t seed, int choice_idx) {
  return choice_idx == 0 ? seed : RandomBits(seed, static_cast<uint64_t>(choice_idx), /*stream=*/1);
}

SchedulerLimits LimitsOf(const EngineOptions& engine_options, const ModelInfo& info) {
  const RunnerOptions& options = engine_options.runner;
  SchedulerLimits limits;
  limits.max_sequences = options.max_step_sequences;
  limits.max_step_tokens = options.max_step_tokens;
  limits.pace = {.max_step_us = int64_t{1000} * engine_options.max_step_ms,
                 .max_prompt_step_us = int64_t{1000} * engine_options.max_prompt_step_ms};
  limits.aging_us = int64_t{1000} * engine_options.aging_ms;
  if (info.block_bytes > 0) {
    limits.max_saved_blocks = static_cast<int>(
        std::min<int64_t>(engine_options.max_saved_bytes / info.block_bytes, INT32_MAX / 2));
  }
  limits.max_context_tokens =
      std::min<int>(info.max_context_tokens, info.num_cache_blocks * info.block_tokens);
  limits.shares_generated_tokens = options.attention_form != AttentionForm::kAuto;
  return limits;
}

// A draft model without a tokenizer is taken at its word: the runner compares the sizes.
Status CheckDraftTokenizer(const EngineOptions& options, const Tokenizer& tokenizer) {
  const std::string& path = options.runner.drafting.draft_model_path;
  if (path.empty()) return Status::Ok();
  const Result<std::unique_ptr<Tokenizer>> draft = Tokenizer::Load(
      options.draft_tokenizer_folder.empty() ? path : options.draft_tokenizer_folder);
  if (draft.ok()) return CheckSameVocabulary(tokenizer, *draft.value(), path);
  return draft.status().code() == StatusCode::kNotFound ? Status::Ok() : draft.status();
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::Open(const EngineOptions& options) {
  Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::Load(
      options.tokenizer_folder.empty() ? options.runner.model_path : options.tokenizer_folder);
  if (!tokenizer.ok() && tokenizer.status().code() != StatusCode::kNotFound)
    return tokenizer.status();
  if (tokenizer.ok()) RETURN_IF_ERROR(CheckDraftTokenizer(options, *tokenizer.value()));
  ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner, CreateRunner(options.runner));
  RETURN_IF_ERROR(CheckSpeculation(options.speculation, runner->info()));
  std::unique_ptr<PrefixStore> store;
  if (!options.cache_dir.empty()) {
    ASSIGN_OR_RETURN(store, PrefixStore::Open({.folder = options.cache_dir,
                                               .max_bytes = options.max_cache_dir_bytes,
                                               .rows_key = runner->info().rows_key,
                                               .block_tokens = runner->info().block_tokens,
                                               .block_bytes = runner->info().block_bytes}));
  }
  std::unique_ptr<TraceWriter> trace;
  if (!options.trace_path.empty()) {
    ASSIGN_OR_RETURN(trace, TraceWriter::Open(options.trace_path));
  }
  return std::make_unique<Engine>(options, std::move(runner),
                                  tokenizer.ok() ? std::move(tokenizer).value() : nullptr,
                                  std::move(store), std::move(trace));
}

Engine::Engine(const EngineOptions& options, std::unique_ptr<ModelRunner> runner,
               std::unique_ptr<Tokenizer> tokenizer, std::unique_ptr<PrefixStore> store,
               std::unique_ptr<TraceWriter> trace)
    : options_(options),
      runner_(std::move(runner)),
      tokenizer_(std::move(tokenizer)),
      store_(std::move(store)),
      trace_(std::move(trace)),
      layout_(ChooseLayout(options, runner_->info(), tokenizer_.get())),
      limits_(LimitsOf(options, runner_->info())) {
  if (tokenizer_) runner_->SetTokenLimit(num_tokens());
  const CacheGeometry geometry{.num_blocks = info().num_cache_blocks,
                               .block_tokens = info().block_tokens};
  loop_ = std::make_unique<StepLoop>(limits_, geometry, runner_.get(), &metrics_, options_.clock,
                                     store_.get(), trace_.get());
  loop_->Start();
}

Engine::~Engine() = default;

bool Engine::is_chat_model() const {
  if (!tokenizer_) return false;
  return !tokenizer_->chat_template().empty() || layout_.layout == ChatLayout::kV32;
}

// Ids below it can be drawn.
int Engine::num_tokens() const {
  return tokenizer_ ? std::min(tokenizer_->vocab_size(), info().vocab_size) : info().vocab_size;
}

Result<std::shared_ptr<ResponseStream>> Engine::Submit(const GenerationRequest& request) {
  RETURN_IF_ERROR(CheckGenerationRequest(request, num_tokens()));
  RETURN_IF_ERROR(CheckSpeculation(request.speculation.value_or(options_.speculation), info()));
  ASSIGN_OR_RETURN(EncodedPrompt prompt, Encode(request));
  for (size_t i = 0; i < prompt.tokens.size(); ++i) {
    if (prompt.tokens[i].value < 0 || prompt.tokens[i].value >= info().vocab_size) {
      return Status::InvalidArgument(
          fmt::format("prompt[{}]: expected token ids from 0 to {}, found {}", i,
                      info().vocab_size - 1, prompt.tokens[i].value));
    }
  }
  ResponseHead head{.sequences = {},
                    .prompt = prompt.tokens,
                    .seed = request.seed ? *request.seed : DrawSeed(),
                    .has_text = tokenizer_ != nullptr,
                    .starts_in_reasoning = prompt.starts_in_reasoning};
  const int64_t first_id = next_id_.fetch_add(request.num_choices);
  for (int i = 0; i < request.num_choices; ++i) head.sequences.push_back({first_id + i});
  auto stream = std::make_shared<ResponseStream>(std::move(head), options_.max_unread_bytes);
  std::vector<Submission> submissions = Split(request, prompt, stream);
  RETURN_IF_ERROR(CheckRequest(limits_, submissions[0].request));
  RETURN_IF_ERROR(TakeRoom(request, static_cast<int64_t>(prompt.tokens.size())));
  loop_->inbox()->Submit(std::move(submissions));
  return stream;
}

// Looking and taking is one step, so that submitters at the same time do not exceed the limits.
Status Engine::TakeRoom(const GenerationRequest& request, int64_t num_prompt_tokens) {
  const int64_t num_tokens = num_prompt_tokens * request.num_choices;
  return metrics_.Update([&](MetricsSnapshot* values) {
    const int64_t num_pending = values->num_pending();
    const int64_t num_pending_tokens =
        values->num_submitted_prompt_tokens - values->num_prompt_tokens;
    const bool is_full =
        num_pending + request.num_choices > options_.max_pending_sequences ||
        (num_pending > 0 && num_pending_tokens + num_tokens > options_.max_pending_prompt_tokens);
    if (is_full) {
      values->num_refused += request.num_choices;
      return Status::ResourceExhausted(fmt::format(
          "{} sequences with {} prompt tokens are waiting or running, at most {} with {} are taken",
          num_pending, num_pending_tokens, options_.max_pending_sequences,
          options_.max_pending_prompt_tokens));
    }
    values->num_submitted += request.num_choices;
    values->num_submitted_prompt_tokens += num_tokens;
    return Status::Ok();
  });
}

MetricsSnapshot Engine::metrics() const {
  MetricsSnapshot snapshot = metrics_.Snapshot();
  snapshot.expert_imbalance = runner_->ExpertImbalance();
  return snapshot;
}

void Engine::SetReadLimit(double bytes_per_s) {
  metrics_.Update([&](MetricsSnapshot* values) { values->read_limit_bytes_per_s = bytes_per_s; });
}

int Engine::RetryAfterSeconds() const {
  const MetricsSnapshot values = metrics_.Snapshot();
  const int64_t num_ended = values.num_stopped + values.num_cut + values.num_failed;
  if (num_ended == 0) return 1;
  const double seconds_per_end =
      values.end_to_end.sum / static_cast<double>(num_ended) / std::max(1, values.num_running);
  return std::clamp(static_cast<int>(std::ceil(seconds_per_end)), 1, 60);
}

std::vector<Submission> Engine::Split(const GenerationRequest& request, const EncodedPrompt& prompt,
                                      const std::shared_ptr<ResponseStream>& stream) const {
  std::vector<Submission> submissions;
  const ResponseHead& head = stream->head();
  const int64_t now_us = options_.clock();
  for (int i = 0; i < request.num_choices; ++i) {
    Request part;
    part.id = head.sequences[i];
    part.prompt = prompt.tokens;
    part.sampling = request.sampling;
    part.sampling.seed = SeedOfChoice(head.seed, i);
    part.speculation = request.speculation.value_or(options_.speculation);
    part.max_tokens = request.max_tokens;
    part.stop_tokens = StopTokens(request);
    part.priority = request.priority;
    part.arrival_us = now_us;
    if (request.deadline_ms > 0) part.deadline_us = now_us + 1000 * request.deadline_ms;
    if (i > 0) part.prompt_leader = head.sequences[0];
    if (!request.cache_salt.empty()) part.cache_salt = PrefixSalt(request.cache_salt, "");

    auto output = std::make_unique<OutputSequence>();
    output->id = part.id;
    output->choice_idx = i;
    output->stream = stream;
    if (tokenizer_) output->decoder.emplace(tokenizer_.get());
    if (prompt.is_chat) output->parser.emplace(layout_.layout, prompt.starts_in_reasoning);
    if (prompt.is_chat) output->constraint = MakeConstraint(request, prompt, part.stop_tokens);
    output->opening = PromptText(request.opening);
    output->max_tool_calls = request.max_tool_calls;
    output->stops = StopMatcher(request.stop);
    output->usage.prompt_tokens = static_cast<int>(prompt.tokens.size());
    output->submitted_us = now_us;
    submissions.push_back({std::move(part), std::move(output)});
  }
  return submissions;
}

Result<Engine::EncodedPrompt> Engine::Encode(const GenerationRequest& request) const {
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&request.input))
    return EncodedPrompt{.tokens = *ids};
  if (!tokenizer_)
    return Status::Unsupported(
        "prompt: this model has no tokenizer.json, so it takes token ids only");
  if (const auto* text = std::get_if<std::string>(&request.input)) return EncodeText(*text);
  return EncodeConversation(std::get<Conversation>(request.input), request.opening);
}

// The caller writes the whole prompt, so added tokens may be written in it. Whether it begins with
// the begin token or not: there is exactly one in front.
Result<Engine::EncodedPrompt> Engine::EncodeText(const std::string& text) const {
  EncodedPrompt prompt{.tokens = tokenizer_->EncodeWithSpecials(text)};
  const TokenId bos = tokenizer_->bos().value_or(info().bos_token);
  if (bos.value < 0) return prompt;
  const auto first = std::ranges::find_if(prompt.tokens, [bos](TokenId id) { return id != bos; });
  prompt.tokens.erase(prompt.tokens.begin(), first);
  prompt.tokens.insert(prompt.tokens.begin(), bos);
  return prompt;
}

Result<Engine::EncodedPrompt> Engine::EncodeConversation(const Conversation& conversation,
                                                         const Prompt& opening) const {
  const Conversation* asked = &conversation;
  Conversation stable;
  if (options_.volatile_lines != VolatileLines::kKeep) {
    stable = conversation;
    StabilizePrompt(options_.volatile_lines, &stable);
    asked = &stable;
  }
  ASSIGN_OR_RETURN(Prompt rendered, RenderChat(layout_.layout, *asked));
  const bool starts_in_reasoning = StartsInReasoning(layout_.layout, rendered);
  rendered.insert(rendered.end(), opening.begin(), opening.end());
  return EncodedPrompt{.tokens = tokenizer_->Encode(rendered),
                       .is_chat = true,
                       .starts_in_reasoning = starts_in_reasoning};
}

std::unique_ptr<AnswerConstraint> Engine::MakeConstraint(
    const GenerationRequest& request, const EncodedPrompt& prompt,
    const std::vector<TokenId>& end_tokens) const {
  if (request.max_reasoning_tokens < 0 && !request.is_json) return nullptr;
  return std::make_unique<AnswerConstraint>(
      tokenizer_.get(), num_tokens(),
      AnswerRules{.max_reasoning_tokens = request.max_reasoning_tokens,
                  .is_json = request.is_json,
                  .may_call_tools = request.max_tool_calls != 0,
                  .may_think = AlwaysThinks(layout_.layout),
                  .starts_in_reasoning = prompt.starts_in_reasoning,
                  .end_tokens = end_tokens});
}

std::vector<TokenId> Engine::StopTokens(const GenerationRequest& request) const {
  std::vector<TokenId> tokens = request.stop_tokens;
  if (request.ignore_eos) return tokens;
  tokens.insert(tokens.end(), info().eos_tokens.begin(), info().eos_tokens.end());
  if (!tokenizer_) return tokens;
  if (const std::optional<TokenId> eos = tokenizer_->eos()) tokens.push_back(*eos);
  if (const std::optional<TokenId> end = tokenizer_->FindAddedToken(kEndOfTurnToken))
    tokens.push_back(*end);
  return tokens;
}

void Engine::Cancel(const ResponseStream& response) { loop_->Cancel(response.head().sequences); }

}  // namespace hadal
