// Tensors of GGUF files under the names and shapes of the published layout. Specification, 8.3.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/gguf.h"
#include "formats/tensor_info.h"

namespace hadal {

// How a GGUF file stores the projections out of the latent.
enum class GgufMlaForm { kNone, kLegacy, kSplit, kBoth };

// The names of attn_k_b and attn_v_b after "model.layers.{l}.": [heads, kv_lora_rank,
// qk_nope_head_dim], transposed per head, and [heads, v_head_dim, kv_lora_rank]. The published
// layout has both in kv_b_proj; files of the split form have no kv_b_proj.
inline constexpr std::string_view kSplitKeyName = "self_attn.k_b_proj.weight";
inline constexpr std::string_view kSplitValueName = "self_attn.v_b_proj.weight";

struct GgufTensors {
  std::vector<TensorInfo> tensors;
  GgufMlaForm mla_form = GgufMlaForm::kNone;
};

// Adds the tensors of a part, `file_idx` in the list of files, to `found`. Stacks of experts are
// cut into one matrix for each, and fused gates and ups into both; tensors without a name there
// keep theirs. kCorrupt for a stack that cannot be cut.
Status AddGgufTensors(std::span<const GgufTensor> tensors, int file_idx, const std::string& what,
                      GgufTensors* found);

// The MTP layer may leave its last norm out and then has the model's: adds that under its name,
// "model.layers.{num_hidden_layers}.shared_head.norm.weight".
void AddMissingMtpNorm(int num_hidden_layers, GgufTensors* found);

}  // namespace hadal
