#include "formats/gguf_tensors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/quote.h"

namespace hadal {
namespace {

constexpr int kMaxLayers = 10000;
constexpr int64_t kMaxExperts = 1 << 20;

struct Name {
  std::string_view gguf, published;
};

constexpr std::array kModelNames = {
    Name{"token_embd.weight", "model.embed_tokens.weight"},
    Name{"output_norm.weight", "model.norm.weight"},
    Name{"output.weight", "lm_head.weight"},
};

// After "blk.{l}." and "model.layers.{l}.".
constexpr std::array kLayerNames = {
    Name{"attn_norm.weight", "input_layernorm.weight"},
    Name{"ffn_norm.weight", "post_attention_layernorm.weight"},
    Name{"attn_q.weight", "self_attn.q_proj.weight"},
    Name{"attn_q_a.weight", "self_attn.q_a_proj.weight"},
    Name{"attn_q_a_norm.weight", "self_attn.q_a_layernorm.weight"},
    Name{"attn_q_b.weight", "self_attn.q_b_proj.weight"},
    Name{"attn_kv_a_mqa.weight", "self_attn.kv_a_proj_with_mqa.weight"},
    Name{"attn_kv_a_norm.weight", "self_attn.kv_a_layernorm.weight"},
    Name{"attn_kv_b.weight", "self_attn.kv_b_proj.weight"},
    Name{"attn_k_b.weight", kSplitKeyName},
    Name{"attn_v_b.weight", kSplitValueName},
    Name{"attn_output.weight", "self_attn.o_proj.weight"},
    Name{"ffn_gate.weight", "mlp.gate_proj.weight"},
    Name{"ffn_up.weight", "mlp.up_proj.weight"},
    Name{"ffn_down.weight", "mlp.down_proj.weight"},
    Name{"ffn_gate_inp.weight", "mlp.gate.weight"},
    Name{"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
    Name{"ffn_gate_shexp.weight", "mlp.shared_experts.gate_proj.weight"},
    Name{"ffn_up_shexp.weight", "mlp.shared_experts.up_proj.weight"},
    Name{"ffn_down_shexp.weight", "mlp.shared_experts.down_proj.weight"},
    Name{"indexer.attn_q_b.weight", "self_attn.indexer.wq_b.weight"},
    Name{"indexer.attn_k.weight", "self_attn.indexer.wk.weight"},
    Name{"indexer.k_norm.weight", "self_attn.indexer.k_norm.weight"},
    Name{"indexer.k_norm.bias", "self_attn.indexer.k_norm.bias"},
    Name{"indexer.proj.weight", "self_attn.indexer.weights_proj.weight"},
    Name{"nextn.eh_proj.weight", "eh_proj.weight"},
    Name{"nextn.embed_tokens.weight", "embed_tokens.weight"},
    Name{"nextn.enorm.weight", "enorm.weight"},
    Name{"nextn.hnorm.weight", "hnorm.weight"},
    Name{"nextn.shared_head_head.weight", "shared_head.head.weight"},
    Name{"nextn.shared_head_norm.weight", "shared_head.norm.weight"},
};

// Stacks of experts: each expert's rows are cut into parts of these names, in this order.
struct Stack {
  std::string_view gguf;
  std::array<std::string_view, 2> parts;  // the second may be empty
};
constexpr std::array kStacks = {
    Stack{"ffn_gate_exps.weight", {"gate_proj.weight", ""}},
    Stack{"ffn_up_exps.weight", {"up_proj.weight", ""}},
    Stack{"ffn_down_exps.weight", {"down_proj.weight", ""}},
    Stack{"ffn_gate_up_exps.weight", {"gate_proj.weight", "up_proj.weight"}},
};

template <size_t kCount>
std::optional<std::string_view> Published(const std::array<Name, kCount>& names,
                                          std::string_view gguf) {
  for (const Name& name : names) {
    if (name.gguf == gguf) return name.published;
  }
  return std::nullopt;
}

// "blk.12.attn_q.weight" taken apart.
struct BlockName {
  int layer = 0;
  std::string_view rest;
};
std::optional<BlockName> ParseBlockName(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  BlockName found;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), found.layer);
  const auto num_digits = static_cast<size_t>(end - name.data());
  if (error != std::errc() || found.layer < 0 || found.layer > kMaxLayers ||
      num_digits == name.size() || name[num_digits] != '.') {
    return std::nullopt;
  }
  found.rest = name.substr(num_digits + 1);
  return found;
}

// Slowest axis first; further axes of one element, which some writers add, are left out.
std::vector<int64_t> ShapeOf(const GgufTensor& tensor) {
  std::vector<int64_t> shape(tensor.sizes.rbegin(), tensor.sizes.rend());
  while (shape.size() > 1 && shape.front() == 1 && shape.size() > 2) shape.erase(shape.begin());
  return shape;
}

class Adder {
 public:
  Adder(int file_idx, const std::string& what, GgufTensors* found)
      : file_idx_(file_idx), what_(what), found_(found) {}

  Status Add(const GgufTensor& tensor) {
    const std::optional<BlockName> block = ParseBlockName(tensor.name);
    std::string name(tensor.name);
    if (!block) {
      if (const auto published = Published(kModelNames, tensor.name)) name = *published;
    } else {
      const std::string prefix = fmt::format("model.layers.{}.", block->layer);
      for (const Stack& stack : kStacks) {
        if (stack.gguf == block->rest) return Cut(tensor, stack, prefix + "mlp.experts.");
      }
      if (const auto published = Published(kLayerNames, block->rest)) {
        name = prefix + std::string(*published);
      }
      NoteForm(block->rest);
    }
    Push(std::move(name), tensor.type.dtype, ShapeOf(tensor), tensor.bytes);
    return Status::Ok();
  }

 private:
  void NoteForm(std::string_view rest) {
    GgufMlaForm& form = found_->mla_form;
    if (rest == "attn_kv_b.weight") {
      form =
          form == GgufMlaForm::kSplit ? GgufMlaForm::kBoth : std::max(form, GgufMlaForm::kLegacy);
    } else if (rest == "attn_k_b.weight") {
      form =
          form == GgufMlaForm::kLegacy ? GgufMlaForm::kBoth : std::max(form, GgufMlaForm::kSplit);
    }
  }

  // sizes: [columns, rows, experts].
  Status Cut(const GgufTensor& tensor, const Stack& stack, const std::string& prefix) {
    const size_t num_parts = stack.parts[1].empty() ? 1 : 2;
    const bool is_stack = tensor.sizes.size() == 3 && tensor.sizes[2] >= 1 &&
                          tensor.sizes[2] <= kMaxExperts && tensor.num_elements() > 0 &&
                          tensor.sizes[1] % static_cast<int64_t>(num_parts) == 0;
    if (!is_stack) {
      return Status::Corrupt(
          fmt::format("{}: tensor {}: expected [experts, rows, columns]{}, found {}", what_,
                      Quoted(tensor.name), num_parts == 2 ? " with an even number of rows" : "",
                      ShapeText(ShapeOf(tensor))));
    }
    const auto num_pieces = static_cast<size_t>(tensor.sizes[2]) * num_parts;
    const int64_t rows = tensor.sizes[1] / static_cast<int64_t>(num_parts);
    const size_t bytes = tensor.bytes.size() / num_pieces;  // rows are whole blocks
    for (size_t i = 0; i < num_pieces; ++i) {
      Push(fmt::format("{}{}.{}", prefix, i / num_parts, stack.parts[i % num_parts]),
           tensor.type.dtype, {rows, tensor.sizes[0]}, tensor.bytes.subspan(i * bytes, bytes));
    }
    return Status::Ok();
  }

  void Push(std::string name, DType dtype, std::vector<int64_t> shape,
            std::span<const std::byte> bytes) {
    found_->tensors.push_back({.name = std::move(name),
                               .dtype = dtype,
                               .shape = std::move(shape),
                               .bytes = bytes,
                               .file_idx = file_idx_});
  }

  int file_idx_;
  const std::string& what_;
  GgufTensors* found_;
};

}  // namespace

Status AddGgufTensors(std::span<const GgufTensor> tensors, int file_idx, const std::string& what,
                      GgufTensors* found) {
  Adder adder(file_idx, what, found);
  for (const GgufTensor& tensor : tensors) RETURN_IF_ERROR(adder.Add(tensor));
  return Status::Ok();
}

void AddMissingMtpNorm(int num_hidden_layers, GgufTensors* found) {
  const std::string prefix = fmt::format("model.layers.{}.", num_hidden_layers);
  const auto find = [&](const std::string& name) {
    return std::ranges::find(found->tensors, name, &TensorInfo::name);
  };
  const auto norm = find("model.norm.weight");
  if (norm == found->tensors.end() || find(prefix + "eh_proj.weight") == found->tensors.end() ||
      find(prefix + "shared_head.norm.weight") != found->tensors.end()) {
    return;
  }
  TensorInfo copy = *norm;
  copy.name = prefix + "shared_head.norm.weight";
  found->tensors.push_back(std::move(copy));
}

}  // namespace hadal
