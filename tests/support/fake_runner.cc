#include "tests/support/fake_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace hadal {

FakeRunner::FakeRunner(const FakeRunnerOptions& options) : options_(options) {
  info_.model_type = "fake";
  info_.vocab_size = options.vocab_size;
  info_.block_tokens = options.block_tokens;
  info_.num_cache_blocks = options.num_cache_blocks;
  info_.max_context_tokens =
      std::min(options.max_context_tokens, options.num_cache_blocks * options.block_tokens);
  info_.eos_tokens = options.eos_tokens;
  info_.rows_key = {1, options.has_one_form ? 3u : 2u};
  info_.block_bytes = options.block_tokens * static_cast<int64_t>(sizeof(Row));
  token_limit_ = options.vocab_size;
  rows_.resize(static_cast<size_t>(options.num_cache_blocks) * options.block_tokens);
}

uint64_t FakeRunner::Extended(uint64_t digest, TokenId token, int position,
                              int num_prompt_tokens) const {
  const bool is_prompt = options_.has_one_form || position < num_prompt_tokens;
  const uint64_t value = static_cast<uint64_t>(token.value) * 2 + (is_prompt ? 1 : 0);
  return Mix64(digest ^ Mix64(value + (static_cast<uint64_t>(position) << 32) + 1));
}

TokenId FakeRunner::Choose(const FakePrefix& prefix) const {
  if (choose) return choose(prefix);
  const uint64_t seed = prefix.sampling->temperature > 0 ? prefix.sampling->seed + 1 : 0;
  return {static_cast<int>(RandomBits(seed, prefix.digest) % static_cast<uint64_t>(token_limit_))};
}

Status FakeRunner::Execute(const BatchPlan& plan, StepResult* result) {
  result->Clear();
  if (holds && holds(plan)) RETURN_IF_ERROR(Hold());
  if (before_step) RETURN_IF_ERROR(before_step(plan));
  HADAL_CHECK(static_cast<int>(plan.tokens.size()) <= options_.max_step_tokens);
  HADAL_CHECK(static_cast<int>(plan.slices.size()) <= options_.max_step_sequences);
  for (const SequenceId id : plan.released) released_.insert(id);
  ++num_steps_;
  largest_step_tokens_ = std::max(largest_step_tokens_, static_cast<int>(plan.tokens.size()));
  largest_step_sequences_ = std::max(largest_step_sequences_, static_cast<int>(plan.slices.size()));
  for (const SequenceSlice& slice : plan.slices) {
    HADAL_CHECK(!released_.contains(slice.id));
    num_computed_tokens_ += slice.num_tokens;
    RunSlice(plan, slice, result);
  }
  return Status::Ok();
}

Status FakeRunner::Hold() {
  std::unique_lock lock(hold_mutex_);
  is_held_ = true;
  hold_changed_.notify_all();
  const bool was_let_go = hold_changed_.wait_for(lock, std::chrono::minutes(1),
                                                 [this] { return is_interrupted_ || is_open_; });
  is_held_ = false;
  HADAL_CHECK(was_let_go);
  return std::exchange(is_interrupted_, false) ? Status::Cancelled("broken off") : Status::Ok();
}

void FakeRunner::WaitUntilHeld() {
  std::unique_lock lock(hold_mutex_);
  hold_changed_.wait(lock, [this] { return is_held_; });
}

void FakeRunner::Release() {
  const std::lock_guard lock(hold_mutex_);
  is_open_ = true;
  hold_changed_.notify_all();
}

void FakeRunner::Interrupt() {
  const std::lock_guard lock(hold_mutex_);
  is_interrupted_ = true;
  hold_changed_.notify_all();
}

Status FakeRunner::CopyBlocksOut(std::span<const BlockId> blocks, std::span<std::byte> bytes) {
  HADAL_CHECK(bytes.size() == blocks.size() * static_cast<size_t>(info_.block_bytes));
  for (const BlockId block : blocks) {
    std::memcpy(bytes.data(), &rows_[block.value * options_.block_tokens],
                static_cast<size_t>(info_.block_bytes));
    bytes = bytes.subspan(static_cast<size_t>(info_.block_bytes));
  }
  return Status::Ok();
}

Status FakeRunner::CopyBlocksIn(std::span<const std::byte> bytes, std::span<const BlockId> blocks) {
  HADAL_CHECK(bytes.size() == blocks.size() * static_cast<size_t>(info_.block_bytes));
  for (const BlockId block : blocks) {
    std::memcpy(&rows_[block.value * options_.block_tokens], bytes.data(),
                static_cast<size_t>(info_.block_bytes));
    bytes = bytes.subspan(static_cast<size_t>(info_.block_bytes));
  }
  return Status::Ok();
}

// The tokens before the slice, as the cache has them, and the digest of their rows.
void FakeRunner::ReadPrefix(const BatchPlan& plan, const SequenceSlice& slice,
                            std::vector<TokenId>* tokens, uint64_t* digest) const {
  *digest = 0;
  for (int position = 0; position < slice.num_cached; ++position) {
    const BlockId block = plan.block_ids[slice.block_begin + position / options_.block_tokens];
    const Row& row = rows_[block.value * options_.block_tokens + position % options_.block_tokens];
    HADAL_CHECK(row.position == position);
    tokens->push_back(row.token);
    // The rows must follow from each other, or a block in the middle belongs to someone else.
    const uint64_t as_prompt = Extended(*digest, row.token, position, position + 1);
    const uint64_t as_output = Extended(*digest, row.token, position, 0);
    HADAL_CHECK(row.digest == as_prompt || row.digest == as_output);
    *digest = row.digest;
  }
}

void FakeRunner::RunSlice(const BatchPlan& plan, const SequenceSlice& slice, StepResult* result) {
  HADAL_CHECK(slice.num_tokens >= 1 && slice.num_drafts < slice.num_tokens);
  HADAL_CHECK(slice.num_blocks * options_.block_tokens >= slice.num_cached + slice.num_tokens);
  std::vector<TokenId> tokens;
  uint64_t digest = 0;
  ReadPrefix(plan, slice, &tokens, &digest);
  if (slice.num_history > 0) {
    const std::span<const TokenId> history(plan.history.data() + slice.history_begin,
                                           static_cast<size_t>(slice.num_history));
    HADAL_CHECK(std::ranges::equal(history, tokens));
  }
  // All new rows are written, those of drafts that turn out wrong included.
  std::vector<uint64_t> digests;
  for (int i = 0; i < slice.num_tokens; ++i) {
    const int position = slice.num_cached + i;
    const TokenId token = plan.tokens[slice.token_begin + i];
    digest = Extended(digest, token, position, slice.num_prompt_tokens);
    digests.push_back(digest);
    tokens.push_back(token);
    const BlockId block = plan.block_ids[slice.block_begin + position / options_.block_tokens];
    rows_[block.value * options_.block_tokens + position % options_.block_tokens] = {
        token, position, digest};
  }
  result->slices.push_back(Draw(slice, tokens, digests, result));
}

SliceResult FakeRunner::Draw(const SequenceSlice& slice, std::span<const TokenId> tokens,
                             std::span<const uint64_t> digests, StepResult* result) const {
  SliceResult drawn{.id = slice.id, .token_begin = static_cast<int>(result->tokens.size())};
  if (!slice.wants_tokens) return drawn;
  if (broken.contains(slice.id)) {
    drawn.error = SliceError::kLogitsNotFinite;
    return drawn;
  }
  for (int i = slice.num_tokens - slice.num_drafts - 1; i < slice.num_tokens; ++i) {
    const int position = slice.num_cached + i;
    const std::span<const TokenId> before = tokens.first(static_cast<size_t>(position + 1));
    const FakePrefix prefix{before, slice.num_prompt_tokens, digests[i], &slice.sampling};
    const TokenId next = Choose(prefix);
    result->tokens.push_back({.token = next, .logprob = -0.5f});
    ++drawn.num_tokens;
    if (i + 1 < slice.num_tokens && tokens[position + 1] == next) continue;
    Propose(prefix, next, &drawn, result);
    break;
  }
  return drawn;
}

void FakeRunner::Propose(const FakePrefix& prefix, TokenId next, SliceResult* drawn,
                         StepResult* result) const {
  drawn->draft_begin = static_cast<int>(result->drafts.size());
  std::vector<TokenId> tokens(prefix.tokens.begin(), prefix.tokens.end());
  uint64_t digest = prefix.digest;
  for (int i = 0; i < options_.num_drafts; ++i) {
    digest = Extended(digest, next, static_cast<int>(tokens.size()), prefix.num_prompt_tokens);
    tokens.push_back(next);
    next = Choose({tokens, prefix.num_prompt_tokens, digest, prefix.sampling});
    if (RandomBits(digest, 77) % 100 < static_cast<uint64_t>(options_.draft_error_percent))
      next.value = (next.value + 1) % options_.vocab_size;
    result->drafts.push_back(next);
    ++drawn->num_drafts;
  }
}

std::vector<TokenId> FakeRunner::Expected(std::span<const TokenId> prompt,
                                          const SamplingParams& sampling, int max_tokens,
                                          std::span<const TokenId> stop_tokens) const {
  std::vector<TokenId> tokens(prompt.begin(), prompt.end()), output;
  const int num_prompt = static_cast<int>(prompt.size());
  uint64_t digest = 0;
  for (int i = 0; i < num_prompt; ++i) digest = Extended(digest, tokens[i], i, num_prompt);
  while (static_cast<int>(output.size()) < max_tokens) {
    const TokenId next = Choose({tokens, num_prompt, digest, &sampling});
    if (std::ranges::find(stop_tokens, next) != stop_tokens.end()) break;
    digest = Extended(digest, next, static_cast<int>(tokens.size()), num_prompt);
    tokens.push_back(next);
    output.push_back(next);
  }
  return output;
}

std::vector<TokenId> FakePrompt(int length, uint64_t seed, int vocab_size) {
  std::vector<TokenId> prompt;
  for (int i = 0; i < length; ++i) {
    const uint64_t bits = RandomBits(seed, static_cast<uint64_t>(i), 5);
    prompt.push_back({10 + static_cast<int>(bits % static_cast<uint64_t>(vocab_size - 10))});
  }
  return prompt;
}

}  // namespace hadal
