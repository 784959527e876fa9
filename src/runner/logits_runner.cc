#include "runner/logits_runner.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "runner/batch_builder.h"
#include "runner/loaded_model.h"

namespace hadal {

struct LogitsRunner::State {
  LoadedModel loaded;
  int chunk_tokens;
  BatchBuilder builder;

  State(LoadedModel model, const RunnerOptions& options)
      : loaded(std::move(model)),
        chunk_tokens(options.max_step_tokens),
        builder(loaded.model->config(), options.attention_form, options.max_step_tokens, 1) {}

  Status Check(std::span<const TokenId> tokens) const;
  BatchPlan PlanChunk(std::span<const TokenId> tokens, int first_position,
                      int num_prompt_tokens) const;
  Status RunMain(const BatchPlan& plan, const std::function<Status(const LogitsChunk&)>& consume);
  Status RunMtp(const BatchPlan& plan, const std::function<Status(const LogitsChunk&)>& consume);
  LogitsChunk AllRows(LogitsKind kind, const BatchPlan& plan) const;
};

Result<std::unique_ptr<LogitsRunner>> LogitsRunner::Create(RunnerOptions options, int num_tokens) {
  options.cache_tokens = std::max(num_tokens, 1);
  options.max_step_tokens = std::min(options.max_step_tokens, std::max(num_tokens, 1));
  options.max_step_sequences = 1;
  ASSIGN_OR_RETURN(
      LoadedModel loaded,
      LoadedModel::Load(options, {.max_logit_rows = options.max_step_tokens, .runs_mtp = true}));
  return std::unique_ptr<LogitsRunner>(
      new LogitsRunner(std::make_unique<State>(std::move(loaded), options)));
}

LogitsRunner::LogitsRunner(std::unique_ptr<State> state) : state_(std::move(state)) {}
LogitsRunner::~LogitsRunner() = default;

int LogitsRunner::vocab_size() const { return state_->loaded.model->config().vocab_size; }
bool LogitsRunner::has_mtp() const { return state_->loaded.model->has_mtp(); }

Status LogitsRunner::State::Check(std::span<const TokenId> tokens) const {
  const int vocab_size = loaded.model->config().vocab_size;
  if (static_cast<int64_t>(tokens.size()) > loaded.max_context_tokens) {
    return Status::InvalidArgument(fmt::format("tokens: expected at most {}, found {}",
                                               loaded.max_context_tokens, tokens.size()));
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].value < 0 || tokens[i].value >= vocab_size) {
      return Status::InvalidArgument(fmt::format("token {}: expected an id from 0 to {}, found {}",
                                                 i, vocab_size - 1, tokens[i].value));
    }
  }
  return Status::Ok();
}

BatchPlan LogitsRunner::State::PlanChunk(std::span<const TokenId> tokens, int first_position,
                                         int num_prompt_tokens) const {
  BatchPlan plan;
  plan.tokens.assign(tokens.begin(), tokens.end());
  for (int block = 0; block < loaded.cache.num_blocks(); ++block) plan.block_ids.push_back({block});
  plan.slices.push_back({.id = {0},
                         .token_begin = 0,
                         .num_tokens = static_cast<int>(tokens.size()),
                         .num_cached = first_position,
                         .num_prompt_tokens = num_prompt_tokens,
                         .block_begin = 0,
                         .num_blocks = loaded.cache.num_blocks()});
  return plan;
}

LogitsChunk LogitsRunner::State::AllRows(LogitsKind kind, const BatchPlan& plan) const {
  return {.kind = kind,
          .first_row = plan.slices[0].num_cached,
          .num_rows = plan.slices[0].num_tokens,
          .vocab_size = loaded.model->config().vocab_size,
          .data = loaded.activations.logits.data};
}

Status LogitsRunner::State::RunMain(const BatchPlan& plan,
                                    const std::function<Status(const LogitsChunk&)>& consume) {
  const ForwardBatch batch = builder.Build(plan);
  std::vector<int32_t> rows(static_cast<size_t>(batch.num_tokens()));
  std::iota(rows.begin(), rows.end(), 0);
  loaded.model->Forward(batch, &loaded.cache, &loaded.activations);
  loaded.model->ComputeLogits(rows, &loaded.activations);
  RETURN_IF_ERROR(loaded.backend->Synchronize());
  return consume(AllRows(LogitsKind::kMain, plan));
}

// REQUIRES: activations.normed still holds the main model's final states of the same positions.
Status LogitsRunner::State::RunMtp(const BatchPlan& plan,
                                   const std::function<Status(const LogitsChunk&)>& consume) {
  const ForwardBatch batch = builder.Build(plan);
  std::vector<int32_t> rows(static_cast<size_t>(batch.num_tokens()));
  std::iota(rows.begin(), rows.end(), 0);
  Activations& activations = loaded.activations;
  loaded.backend->GatherRows(activations.normed, rows,
                             activations.mtp_hidden.Rows(0, batch.num_tokens()));
  loaded.model->ForwardMtp(batch, &loaded.cache, &activations);
  loaded.model->ComputeMtpLogits(rows, &activations);
  RETURN_IF_ERROR(loaded.backend->Synchronize());
  return consume(AllRows(LogitsKind::kMtp, plan));
}

Status LogitsRunner::Run(std::span<const TokenId> tokens,
                         const std::function<Status(const LogitsChunk&)>& consume) {
  RETURN_IF_ERROR(state_->Check(tokens));
  const int total = static_cast<int>(tokens.size());
  for (int first = 0; first < total; first += state_->chunk_tokens) {
    const auto begin = static_cast<size_t>(first);
    const int count = std::min(state_->chunk_tokens, total - first);
    RETURN_IF_ERROR(state_->RunMain(
        state_->PlanChunk(tokens.subspan(begin, static_cast<size_t>(count)), first, total),
        consume));
    const int num_pairs = std::min(count, total - 1 - first);
    if (!has_mtp() || num_pairs == 0) continue;
    RETURN_IF_ERROR(state_->RunMtp(
        state_->PlanChunk(tokens.subspan(begin + 1, static_cast<size_t>(num_pairs)), first, total),
        consume));
  }
  return Status::Ok();
}

}  // namespace hadal
