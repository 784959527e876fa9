#include "runner/model_drafter.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"

namespace hadal {
namespace {

uint64_t ExtendKey(uint64_t key, TokenId token) {
  return Mix64(key * 0x9e3779b97f4a7c15ULL + static_cast<uint32_t>(token.value) + 1);
}

// Every sequence is one token ahead of the model's own step.
int MaxTokens(const RunnerOptions& options) {
  return options.max_step_tokens + options.max_step_sequences;
}

}  // namespace

Result<std::unique_ptr<ModelDrafter>> ModelDrafter::Load(const RunnerOptions& options,
                                                         int vocab_size, int num_blocks,
                                                         Sampler* sampler) {
  RunnerOptions draft_options = options;
  draft_options.model_path = options.drafting.draft_model_path;
  draft_options.drafting = {};
  draft_options.profile = nullptr;
  draft_options.weight_format = {};
  draft_options.max_step_tokens = MaxTokens(options);
  draft_options.cache_tokens = int64_t{num_blocks} * kBlockTokens;
  ASSIGN_OR_RETURN(
      LoadedModel loaded,
      LoadedModel::Load(draft_options, {.max_logit_rows = options.max_step_sequences}));
  const int found = loaded.model->config().vocab_size;
  if (found != vocab_size) {
    return Status::InvalidArgument(
        fmt::format("draft model {}: expected a vocabulary of {} tokens like the model's, found {}",
                    draft_options.model_path, vocab_size, found));
  }
  return std::unique_ptr<ModelDrafter>(new ModelDrafter(std::move(loaded), draft_options, sampler));
}

ModelDrafter::ModelDrafter(LoadedModel loaded, const RunnerOptions& options, Sampler* sampler)
    : loaded_(std::move(loaded)),
      max_tokens_(options.max_step_tokens),
      builder_(loaded_.model->config(), options.attention_form, options.max_step_tokens,
               options.max_step_sequences),
      picker_(sampler),
      blocks_(static_cast<size_t>(loaded_.cache.num_blocks())) {}

ModelDrafter::BlockContent& ModelDrafter::ContentAt(const BatchPlan& plan,
                                                    const SequenceSlice& slice, int block_idx) {
  const BlockId block = plan.block_ids[static_cast<size_t>(slice.block_begin + block_idx)];
  return blocks_[static_cast<size_t>(block.value)];
}

// Leading tokens of the text whose rows are there, those of guesses that came true included.
int ModelDrafter::CountRows(const BatchPlan& plan, const DraftTask& task, SequenceState* state) {
  for (size_t n = state->keys.size(); n <= task.text.size(); ++n)
    state->keys.push_back(ExtendKey(state->keys.back(), task.text[n - 1]));
  int num_rows = 0;
  for (int i = 0; i < task.slice->num_blocks; ++i) {
    const BlockContent& content = ContentAt(plan, *task.slice, i);
    const auto end = static_cast<size_t>(i * kBlockTokens + content.num_rows);
    if (content.num_rows == 0 || end > task.text.size() || state->keys[end] != content.key) break;
    num_rows = static_cast<int>(end);
    if (content.num_rows < kBlockTokens) break;
  }
  const int begin = num_rows;
  if (state->guessed_begin == begin) {
    for (const TokenId token : state->guessed) {
      const auto at = static_cast<size_t>(num_rows);
      if (at >= task.text.size() || task.text[at] != token) break;
      ++num_rows;
    }
    NoteRows(plan, *task.slice, *state, begin, num_rows);
  }
  state->guessed.clear();
  return num_rows;
}

void ModelDrafter::NoteRows(const BatchPlan& plan, const SequenceSlice& slice,
                            const SequenceState& state, int begin, int end) {
  for (int position = begin; position < end;) {
    const int block_idx = position / kBlockTokens;
    position = std::min(end, (block_idx + 1) * kBlockTokens);
    ContentAt(plan, slice, block_idx) = {.key = state.keys[static_cast<size_t>(position)],
                                         .num_rows = position - block_idx * kBlockTokens};
  }
}

void ModelDrafter::AddTokens(const DraftTask& task, int begin, std::span<const TokenId> tokens) {
  SequenceSlice slice = *task.slice;
  slice.token_begin = static_cast<int>(feed_.tokens.size());
  slice.num_tokens = static_cast<int>(tokens.size());
  slice.num_cached = begin;
  slice.num_drafts = 0;
  slice.wants_tokens = false;
  feed_.tokens.insert(feed_.tokens.end(), tokens.begin(), tokens.end());
  feed_.slices.push_back(slice);
}

// Feeds what is missing as far as there is room; who then has all of its text may guess.
void ModelDrafter::AddMissing(const BatchPlan& plan, const DraftTask& task) {
  SequenceState& state = sequences_[task.slice->id];
  const int num_tokens = static_cast<int>(task.text.size());
  const int begin = std::min(CountRows(plan, task, &state), num_tokens - 1);
  const int room = max_tokens_ - static_cast<int>(feed_.tokens.size());
  const int num_slots = std::min(task.slice->num_blocks * kBlockTokens, loaded_.max_context_tokens);
  const int end = std::min({num_tokens, num_slots, begin + room});
  if (end <= begin) return;
  AddTokens(task, begin,
            task.text.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  NoteRows(plan, *task.slice, state, begin, end);
  state.guessed_begin = end;
  if (end < num_tokens || task.max_drafts == 0) return;
  chains_.push_back(
      {.task = &task, .row = static_cast<int>(feed_.tokens.size()) - 1, .position = end - 1});
}

Status ModelDrafter::ForwardAll(const BatchPlan& plan) {
  feed_.block_ids = plan.block_ids;
  loaded_.model->Forward(builder_.Build(feed_), &loaded_.cache, &loaded_.activations);
  feed_.slices.clear();
  feed_.tokens.clear();
  return loaded_.backend->Synchronize();
}

// Draws the next guess of every chain, and feeds the guesses of those that go on.
Status ModelDrafter::PickAll() {
  rows_.clear();
  for (const Chain& chain : chains_) rows_.push_back(chain.row);
  loaded_.model->ComputeLogits(rows_, &loaded_.activations);
  RETURN_IF_ERROR(loaded_.backend->Synchronize());
  size_t num_left = 0;
  for (size_t i = 0; i < chains_.size(); ++i) {
    const DraftTask& task = *chains_[i].task;
    const FloatMatrix row = loaded_.activations.logits.Rows(static_cast<int>(i), 1);
    const bool is_picked = picker_.Pick(task, {row.data, static_cast<size_t>(row.cols)});
    const bool is_full = static_cast<int>(task.drafts->size()) >= task.max_drafts;
    const int position = chains_[i].position + 1;
    const bool has_slot =
        position < task.slice->num_blocks * kBlockTokens && position < loaded_.max_context_tokens;
    if (!is_picked || is_full || !has_slot) continue;
    sequences_[task.slice->id].guessed.push_back(task.drafts->back());
    chains_[num_left] = {.task = &task, .row = static_cast<int>(num_left), .position = position};
    ++num_left;
  }
  chains_.resize(num_left);
  for (const Chain& chain : chains_)
    AddTokens(*chain.task, chain.position, std::span(&chain.task->drafts->back(), 1));
  return Status::Ok();
}

Status ModelDrafter::Propose(const BatchPlan& plan, std::span<const DraftTask> tasks) {
  feed_.slices.clear();
  feed_.tokens.clear();
  chains_.clear();
  for (const DraftTask& task : tasks) {
    // Whoever guesses nothing is caught up with later; but prompts are read as they come.
    if (task.max_drafts > 0 || !task.slice->wants_tokens) AddMissing(plan, task);
  }
  if (feed_.slices.empty()) return Status::Ok();
  RETURN_IF_ERROR(ForwardAll(plan));
  while (!chains_.empty()) {
    RETURN_IF_ERROR(PickAll());
    if (!chains_.empty()) RETURN_IF_ERROR(ForwardAll(plan));
  }
  return Status::Ok();
}

}  // namespace hadal
