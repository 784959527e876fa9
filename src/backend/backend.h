// The operations that a model needs of a device: each a whole operation on a whole step, coarse
// enough for a device to fuse what it likes. One implementation per device; the model's equations
// are written once, on top of this.
//
// Contract of every operation: a row of the output has the same bits whichever other rows are
// computed with it. An operation reports no error: arguments were checked when the model was loaded
// and the step was built; a device that fails says so in Synchronize().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "tensor/buffer.h"
#include "tensor/matrix.h"
#include "tensor/quantized_matrix.h"

namespace hadal {

// New tokens of one sequence that are attended in one form. Rows [token_begin, token_begin +
// num_tokens) of the step sit at positions first_position, first_position + 1, ... and see all
// positions up to their own.
struct AttentionRange {
  int token_begin = 0, num_tokens = 0;
  int first_position = 0;
  std::span<const int32_t>
      block_ids;  // of the sequence: block i holds positions [i * block_tokens, ...)
  bool is_absorbed = false;
  bool is_sparse = false;  // attend the positions that `selection` lists instead of all
};

// Positions that each token may see, chosen by the indexer; row t is used when its range is sparse.
struct PositionSelection {
  MatrixView<int32_t> positions;  // [tokens, index_topk], ascending
  std::span<int32_t> counts;      // [tokens]
};

struct HeadShape {
  int num_heads = 0;
  int qk_nope_head_dim = 0, qk_rope_head_dim = 0, v_head_dim = 0;
  int kv_lora_rank = 0;
  int qk_head_dim() const { return qk_nope_head_dim + qk_rope_head_dim; }
  int latent_dim() const { return kv_lora_rank + qk_rope_head_dim; }
};

// Multi-head latent attention over a paged cache. DeepSeek-V2 report, 2.1; specification, 3.3
// and 3.7.
//   expanded:  k = [UK_h c_s ; kr_s], v = UV_h c_s:   out = sum_s softmax_s(scale * q . k_s) v_s
//   absorbed:  q' = [UK_h^T q_nope ; q_rope]:         out = UV_h sum_s softmax_s(scale * q' . [c_s
//   ; kr_s]) c_s
// Sums over s run over fixed spans of positions (of entries of the selection, when sparse), each on
// its own, merged in order, however spans are given to threads. REQUIRES: the cache rows of all
// positions that a token sees are stored.
struct LatentAttentionArgs {
  HeadShape shape;
  float scale = 1.0f;
  ConstFloatMatrix
      queries;  // [tokens, num_heads * qk_head_dim]; per head: nope part, rotated rope part
  QuantizedMatrix kv_b;  // [num_heads * (nope + v), kv_lora_rank]; per head: UK rows, then UV rows
  CacheRows cache;       // [slots, latent_dim]: the normalised latent, then the rotated rope key
  int block_tokens =
      0;  // slot of position p = block_ids[p / block_tokens] * block_tokens + p % block_tokens
  std::span<const AttentionRange> ranges;
  const PositionSelection* selection = nullptr;  // when a range is sparse
  FloatMatrix out;                               // [tokens, num_heads * v_head_dim]
};

// The indexer's choice for the tokens of sparse ranges. Specification, 6.1 and 6.3.
//   score(t, s) = scale * sum_h head_weights[t, h] * ReLU(q[t, h] . k[s])   for s <= position(t)
// The topk largest; among equal scores the lower position wins.
struct SelectPositionsArgs {
  int num_heads = 0, head_dim = 0, topk = 0;
  float scale = 1.0f;
  ConstFloatMatrix queries;       // [tokens, num_heads * head_dim], rotated
  ConstFloatMatrix head_weights;  // [tokens, num_heads]
  CacheRows cache;                // [slots, head_dim]: index keys, kF32
  int block_tokens = 0;
  std::span<const AttentionRange> ranges;  // those that are not sparse are skipped
  PositionSelection* selection = nullptr;
};

// The routed experts of one layer.
struct ExpertWeights {
  std::span<const QuantizedMatrix> gate, up;  // [moe_intermediate_size, hidden_size] each
  std::span<const QuantizedMatrix> down;      // [hidden_size, moe_intermediate_size]
};

// What the router chose for each token, best first. No token is ever dropped.
struct ExpertChoice {
  MatrixView<const int32_t> ids;  // [tokens, num_experts_per_tok]
  ConstFloatMatrix weights;       // [tokens, num_experts_per_tok]
};

// One of several products with the same input.
struct ProductTarget {
  const QuantizedMatrix* w = nullptr;
  FloatMatrix out;  // [tokens, w.rows]
};

enum class RopeStyle { kInterleaved, kHalfSplit };

// Rotates parts of rows in place: of each row t, for each of num_parts parts, the columns
// [first + p * part_stride, first + p * part_stride + size).
struct RopeArgs {
  FloatMatrix x;
  int first = 0, num_parts = 1, part_stride = 0, size = 0;
  RopeStyle style = RopeStyle::kInterleaved;
  ConstFloatMatrix cos, sin;  // [tokens, size / 2]
};

// Room for the largest step, so that nothing is allocated during one.
struct BackendLimits {
  int max_step_tokens = 0;
  int max_context_tokens = 0;
  HeadShape shape;
  int hidden_size = 0;
  int num_experts_per_tok = 0, n_routed_experts = 0, moe_intermediate_size = 0;
  int index_n_heads = 0;
  int widest_input = 0;  // input features of the widest matrix
};

// How the inputs of products with grouped weights are computed with: as they are, or rounded to
// bytes, one scale for each group of the weight, which is several times faster. Other weights
// always meet float32.
enum class ActivationFormat { kFloat32, kInt8 };

struct BackendOptions {
  int num_threads = 0;  // 0: all usable cores
  std::string kernels;  // empty: the best usable set
  ActivationFormat activations = ActivationFormat::kInt8;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual Device device() const = 0;
  virtual std::string kernels_name() const = 0;
  virtual int num_threads() const = 0;

  // kResourceExhausted when memory is short.
  virtual Result<Buffer> Allocate(int64_t bytes) = 0;
  // Copies bytes of the host to memory that Allocate gave, as fast as all cores can.
  virtual void Upload(std::span<const std::byte> host, std::byte* to) = 0;
  // The same for a matrix, in the layout that this backend multiplies best: returns it as it is at
  // `to`, where it takes as many bytes.
  virtual QuantizedMatrix UploadMatrix(const QuantizedMatrix& host, std::byte* to) = 0;
  // Takes the scratch for steps within `limits`. Call once, before the first attention or expert
  // operation.
  virtual Status Prepare(const BackendLimits& limits) = 0;

  // out[t] = row tokens[t] of the table, as float. REQUIRES: 0 <= tokens[t] < table.rows.
  virtual void Embed(IndexView tokens, const QuantizedMatrix& table, FloatMatrix out) = 0;
  // Row by row; see KernelTable for the formulas. x and out may be the same rows.
  virtual void RmsNorm(ConstFloatMatrix x, std::span<const float> gain, float eps,
                       FloatMatrix out) = 0;
  virtual void LayerNorm(ConstFloatMatrix x, std::span<const float> gain,
                         std::span<const float> bias, float eps, FloatMatrix out) = 0;
  // out = x * w^T, and out += x * w^T.
  virtual void MatMul(ConstFloatMatrix x, const QuantizedMatrix& w, FloatMatrix out) = 0;
  virtual void MatMulAdd(ConstFloatMatrix x, const QuantizedMatrix& w, FloatMatrix inout) = 0;
  // target.out = x * target.w^T for each; one pass over x.
  virtual void MatMulEach(ConstFloatMatrix x, std::span<const ProductTarget> targets) = 0;
  // out = silu(x * gate^T) * (x * up^T); one pass over x.
  virtual void GatedMatMul(ConstFloatMatrix x, const QuantizedMatrix& gate,
                           const QuantizedMatrix& up, FloatMatrix out) = 0;
  virtual void Rope(const RopeArgs& args) = 0;
  // cache[slots[t]] = rows[t].
  virtual void StoreRows(ConstFloatMatrix rows, IndexView slots, CacheRows cache) = 0;
  // out[i] = x[rows[i]].
  virtual void GatherRows(ConstFloatMatrix x, IndexView rows, FloatMatrix out) = 0;
  virtual void SelectPositions(const SelectPositionsArgs& args) = 0;
  virtual void LatentAttention(const LatentAttentionArgs& args) = 0;
  // inout[t] += sum over the choices of t, best first, of weight * down(silu(gate x) * (up x)).
  virtual void ExpertMlp(ConstFloatMatrix x, const ExpertWeights& experts,
                         const ExpertChoice& choice, FloatMatrix inout) = 0;
  // inout += x.
  virtual void Add(ConstFloatMatrix x, FloatMatrix inout) = 0;

  // From now on attention and experts may leave their results unfinished once *stop is set, which
  // then belong to a step that is thrown away. Null: no longer.
  virtual void WatchStop(const std::atomic<bool>* stop) = 0;

  // Waits until everything asked for is done.
  virtual Status Synchronize() = 0;
};

// kInvalidArgument for an unknown or unusable kernel set, naming those that are usable.
Result<std::unique_ptr<Backend>> CreateBackend(const BackendOptions& options);

}  // namespace hadal
