#include "runner/mtp_drafter.h"

namespace hadal {

MtpDrafter::MtpDrafter(LoadedModel* loaded, const RunnerOptions& options, Sampler* sampler)
    : loaded_(loaded),
      builder_(loaded->model->config(), options.attention_form, options.max_step_tokens,
               options.max_step_sequences),
      picker_(sampler) {}

// Pairs of a slice: the state of each kept token with the token behind it. Of a prompt that is
// partly read the last such token is still to come, but the plan knows it.
void MtpDrafter::AddPairs(const DraftTask& task) {
  SequenceSlice slice = *task.slice;
  const auto first = static_cast<size_t>(slice.num_cached);
  slice.token_begin = static_cast<int>(pairs_.tokens.size());
  slice.num_tokens = task.num_kept;
  slice.num_drafts = 0;
  for (int i = 0; i < task.num_kept; ++i) {
    const size_t next = first + static_cast<size_t>(i) + 1;
    pairs_.tokens.push_back(next < task.text.size() ? task.text[next] : slice.next_token);
    rows_.push_back(task.first_row + i);
  }
  pairs_.slices.push_back(slice);
  if (task.max_drafts == 0) return;
  chains_.push_back({.task = &task,
                     .row = static_cast<int>(rows_.size()) - 1,
                     .position = slice.num_cached + task.num_kept - 1});
}

void MtpDrafter::AddLink(const Chain& chain) {
  SequenceSlice slice = *chain.task->slice;
  slice.token_begin = static_cast<int>(pairs_.tokens.size());
  slice.num_tokens = 1;
  slice.num_cached = chain.position + 1;
  slice.num_drafts = 0;
  pairs_.tokens.push_back(chain.task->drafts->back());
  rows_.push_back(chain.row);
  pairs_.slices.push_back(slice);
}

void MtpDrafter::ForwardPairs(const BatchPlan& plan) {
  pairs_.block_ids = plan.block_ids;
  const ForwardBatch batch = builder_.Build(pairs_);
  Activations& activations = loaded_->activations;
  loaded_->backend->GatherRows(activations.normed, rows_,
                               activations.mtp_hidden.Rows(0, batch.num_tokens()));
  loaded_->model->ForwardMtp(batch, &loaded_->cache, &activations);
}

// Draws the next guess of every chain and leaves those that go on.
Status MtpDrafter::PickAll() {
  rows_.clear();
  for (const Chain& chain : chains_) rows_.push_back(chain.row);
  loaded_->model->ComputeMtpLogits(rows_, &loaded_->activations);
  RETURN_IF_ERROR(loaded_->backend->Synchronize());
  size_t num_left = 0;
  for (size_t i = 0; i < chains_.size(); ++i) {
    const Chain chain = chains_[i];
    const DraftTask& task = *chain.task;
    const FloatMatrix row = loaded_->activations.logits.Rows(static_cast<int>(i), 1);
    const bool is_picked = picker_.Pick(task, {row.data, static_cast<size_t>(row.cols)});
    const bool is_full = static_cast<int>(task.drafts->size()) >= task.max_drafts;
    const bool has_slot = chain.position + 1 < task.slice->num_blocks * kBlockTokens;
    if (is_picked && !is_full && has_slot) chains_[num_left++] = chain;
  }
  chains_.resize(num_left);
  return Status::Ok();
}

Status MtpDrafter::Propose(const BatchPlan& plan, std::span<const DraftTask> tasks) {
  pairs_.slices.clear();
  pairs_.tokens.clear();
  rows_.clear();
  chains_.clear();
  for (const DraftTask& task : tasks) {
    // Where nothing is guessed, rows are left out: an eighth of a step on a small model.
    if (task.max_drafts > 0 || !task.slice->wants_tokens) AddPairs(task);
  }
  if (pairs_.slices.empty()) return Status::Ok();
  ForwardPairs(plan);
  while (!chains_.empty()) {
    RETURN_IF_ERROR(PickAll());
    if (chains_.empty()) break;
    pairs_.slices.clear();
    pairs_.tokens.clear();
    rows_.clear();
    for (const Chain& chain : chains_) AddLink(chain);
    ForwardPairs(plan);
    for (size_t i = 0; i < chains_.size(); ++i) {
      chains_[i].row = static_cast<int>(i);
      ++chains_[i].position;
    }
  }
  return loaded_->backend->Synchronize();
}

}  // namespace hadal
