#include "convert/layer_walker.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/types.h"
#include "model/decoder_layer.h"
#include "model/mla_attention.h"
#include "model/widest_input.h"

namespace hadal {
namespace {

// Of a step; a longer window is a step of its own.
constexpr int kStepTokens = 1024;
constexpr int kStepBlocks = 2 * kStepTokens / kBlockTokens;

}  // namespace

Result<std::unique_ptr<LayerWalker>> LayerWalker::Create(
    const ModelConfig& config, const ModelWeights& weights,
    const std::vector<std::vector<TokenId>>& windows, Backend* backend) {
  HADAL_CHECK(!windows.empty());
  std::unique_ptr<LayerWalker> walker(new LayerWalker(config, weights, windows, backend));
  RETURN_IF_ERROR(walker->Prepare());
  return walker;
}

LayerWalker::LayerWalker(const ModelConfig& config, const ModelWeights& weights,
                         const std::vector<std::vector<TokenId>>& windows, Backend* backend)
    : config_(config),
      weights_(weights),
      windows_(windows),
      inner_(backend),
      backend_(backend),
      rope_(config) {}

// Packs windows into steps; each window has blocks of the cache of its own.
void LayerWalker::PlanSteps() {
  steps_.clear();
  tokens_.clear();
  std::vector<int> num_blocks;  // of each step
  for (const auto& window : windows_) {
    const int size = static_cast<int>(window.size());
    const int blocks = CeilDiv(size, kBlockTokens);
    if (steps_.empty() || steps_.back().num_tokens + size > kStepTokens ||
        num_blocks.back() + blocks > kStepBlocks) {
      steps_.emplace_back().first_row = tokens_.size();
      num_blocks.push_back(0);
    }
    Step& step = steps_.back();
    const int first_slot = num_blocks.back() * kBlockTokens;
    for (int i = 0; i < size; ++i) {
      tokens_.push_back(window[static_cast<size_t>(i)].value);
      step.positions.push_back(i);
      step.slots.push_back(first_slot + i);
    }
    // All tokens of a window see all before them: sparse selection begins far behind a window's
    // end.
    step.ranges.push_back({.token_begin = step.num_tokens,
                           .num_tokens = size,
                           .first_position = 0,
                           .block_ids = {},
                           .is_absorbed = false,
                           .is_sparse = false});
    step.sizes.push_back(size);
    step.num_tokens += size;
    num_blocks.back() += blocks;
  }
  block_ids_.resize(static_cast<size_t>(*std::ranges::max_element(num_blocks)));
  std::iota(block_ids_.begin(), block_ids_.end(), 0);
  for (Step& step : steps_) {
    size_t first_block = 0;
    for (AttentionRange& range : step.ranges) {
      const auto count = static_cast<size_t>(CeilDiv(range.num_tokens, kBlockTokens));
      range.block_ids = std::span<const int32_t>(block_ids_).subspan(first_block, count);
      first_block += count;
    }
  }
}

Status LayerWalker::Prepare() {
  PlanSteps();
  int max_tokens = 0, longest = 0;
  for (const Step& step : steps_) max_tokens = std::max(max_tokens, step.num_tokens);
  for (const auto& window : windows_) longest = std::max(longest, static_cast<int>(window.size()));
  // Enough for the windows of the MTP module too, which are packed anew.
  const int num_blocks = std::max(kStepBlocks, CeilDiv(longest, kBlockTokens));
  ASSIGN_OR_RETURN(cache_, LatentCache::Create(config_, config_.num_stored_layers(), num_blocks,
                                               CacheType::kF32, &backend_));
  ASSIGN_OR_RETURN(activations_, Activations::Create(config_, max_tokens, 1, &backend_));
  RETURN_IF_ERROR(backend_.Prepare({.max_step_tokens = std::max(max_tokens, kMaxExpertBatchRows),
                                    .max_context_tokens = longest,
                                    .shape = AttentionShape(config_),
                                    .hidden_size = config_.hidden_size,
                                    .num_experts_per_tok = config_.num_experts_per_tok,
                                    .n_routed_experts = config_.n_routed_experts,
                                    .moe_intermediate_size = config_.moe_intermediate_size,
                                    .index_n_heads = config_.index_n_heads,
                                    .widest_input = WidestInput(config_)}));
  hidden_.resize(tokens_.size() * static_cast<size_t>(config_.hidden_size));
  for (const Step& step : steps_) {
    backend_.Embed(std::span(tokens_).subspan(step.first_row, static_cast<size_t>(step.num_tokens)),
                   weights_.embedding, Hidden(step));
  }
  return Status::Ok();
}

FloatMatrix LayerWalker::Hidden(const Step& step) {
  const int width = config_.hidden_size;
  return {hidden_.data() + step.first_row * static_cast<size_t>(width), step.num_tokens, width,
          width};
}

void LayerWalker::RunLayer(int layer_idx, const LayerWeights& weights, Outcome outcome) {
  DecoderLayer layer(config_, weights, layer_idx, &backend_);
  for (const Step& step : steps_) {
    const FloatMatrix hidden = Hidden(step);
    const auto count = static_cast<size_t>(step.num_tokens);
    const ForwardBatch batch = {.tokens = std::span(tokens_).subspan(step.first_row, count),
                                .positions = step.positions,
                                .slots = step.slots,
                                .ranges = step.ranges,
                                .has_sparse_range = false};
    rope_.FillAngles(step.positions, activations_.cos, activations_.sin);
    if (config_.has_indexer()) {
      rope_.FillPlainAngles(step.positions, activations_.index_cos, activations_.index_sin);
    }
    std::copy_n(hidden.data, count * static_cast<size_t>(hidden.cols), activations_.hidden.data);
    layer.Forward(batch, &cache_, &activations_);
    if (outcome == Outcome::kDropped) continue;
    std::copy_n(activations_.hidden.data, count * static_cast<size_t>(hidden.cols), hidden.data);
  }
}

std::unique_ptr<LayerInputs> LayerWalker::Observe(int layer_idx) {
  const LayerWeights& weights = layer_idx == config_.num_hidden_layers
                                    ? weights_.mtp->layer
                                    : weights_.layers[static_cast<size_t>(layer_idx)];
  auto inputs = std::make_unique<LayerInputs>(weights, inner_);
  backend_.SetObserver(inputs.get());
  RunLayer(layer_idx, weights, Outcome::kDropped);
  backend_.SetObserver(nullptr);
  return inputs;
}

void LayerWalker::Advance(int layer_idx, const LayerWeights& weights) {
  RunLayer(layer_idx, weights, Outcome::kKept);
}

InputMoments LayerWalker::FinalMoments() {
  InputMoments moments(config_.hidden_size);
  for (const Step& step : steps_) {
    backend_.RmsNorm(Hidden(step), weights_.final_norm, static_cast<float>(config_.rms_norm_eps),
                     Hidden(step));
    moments.Add(Hidden(step), inner_);
  }
  return moments;
}

// Token t + 1 joins the final hidden state of token t; the last token of a window has none to join
// and is left out. REQUIRES: FinalMoments() has normalised the hidden states.
InputMoments LayerWalker::EnterMtp() {
  const MtpWeights& mtp = *weights_.mtp;
  const int width = config_.hidden_size;
  const auto eps = static_cast<float>(config_.rms_norm_eps);
  InputMoments moments(2 * width);
  joined_.clear();
  std::vector<float> embeddings;
  for (const Step& step : steps_) {
    int first = 0;
    for (const int size : step.sizes) {
      const int pairs = size - 1;
      embeddings.resize(static_cast<size_t>(pairs) * static_cast<size_t>(width));
      const size_t begin = joined_.size();
      joined_.resize(begin + 2 * embeddings.size());
      const FloatMatrix embedded = {embeddings.data(), pairs, width, width};
      const FloatMatrix joined = {joined_.data() + begin, pairs, 2 * width, 2 * width};
      const size_t first_token = step.first_row + static_cast<size_t>(first);
      backend_.Embed(std::span(tokens_).subspan(first_token + 1, static_cast<size_t>(pairs)),
                     mtp.embedding, embedded);
      backend_.RmsNorm(embedded, mtp.enorm, eps, joined.Cols(0, width));
      backend_.RmsNorm(Hidden(step).Rows(first, pairs), mtp.hnorm, eps, joined.Cols(width, width));
      moments.Add(joined, inner_);
      first += size;
    }
  }
  return moments;
}

void LayerWalker::ProjectMtp(const QuantizedMatrix& eh_proj) {
  const int width = config_.hidden_size;
  for (auto& window : windows_) window.pop_back();
  PlanSteps();
  hidden_.resize(tokens_.size() * static_cast<size_t>(width));
  for (const Step& step : steps_) {
    backend_.MatMul({joined_.data() + 2 * step.first_row * static_cast<size_t>(width),
                     step.num_tokens, 2 * width, 2 * width},
                    eh_proj, Hidden(step));
  }
  std::vector<float>().swap(joined_);
}

}  // namespace hadal
