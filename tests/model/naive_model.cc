#include "tests/model/naive_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include <fmt/format.h>

#include "tests/model/naive_gate.h"
#include "tests/support/tensor_values.h"

namespace hadal {
namespace {

// y[t] = W x[t]
NaiveMatrix Linear(const NaiveMatrix& x, const NaiveMatrix& w) {
  NaiveMatrix y(x.rows, w.rows);
  for (int t = 0; t < x.rows; ++t) {
    for (int o = 0; o < w.rows; ++o) {
      const double* row = w.row(o);
      const double* in = x.row(t);
      double sum = 0;
      for (int i = 0; i < w.cols; ++i) sum += row[i] * in[i];
      y.row(t)[o] = sum;
    }
  }
  return y;
}

// Specification, 3.2: y_j = w_j * x_j * (mean(x^2) + eps)^(-1/2)
NaiveMatrix RmsNorm(const NaiveMatrix& x, const NaiveMatrix& gain, double eps) {
  NaiveMatrix y(x.rows, x.cols);
  for (int t = 0; t < x.rows; ++t) {
    double mean = 0;
    for (int j = 0; j < x.cols; ++j) mean += x.row(t)[j] * x.row(t)[j] / x.cols;
    for (int j = 0; j < x.cols; ++j) {
      y.row(t)[j] = gain.row(0)[j] * x.row(t)[j] / std::sqrt(mean + eps);
    }
  }
  return y;
}

// Specification, 6.1: mean and variance, weight and bias, eps 1e-6 whatever the config says.
NaiveMatrix LayerNorm(const NaiveMatrix& x, const NaiveMatrix& gain, const NaiveMatrix& bias) {
  NaiveMatrix y(x.rows, x.cols);
  for (int t = 0; t < x.rows; ++t) {
    double mean = 0, variance = 0;
    for (int j = 0; j < x.cols; ++j) mean += x.row(t)[j] / x.cols;
    for (int j = 0; j < x.cols; ++j) variance += std::pow(x.row(t)[j] - mean, 2) / x.cols;
    for (int j = 0; j < x.cols; ++j) {
      y.row(t)[j] =
          gain.row(0)[j] * (x.row(t)[j] - mean) / std::sqrt(variance + 1e-6) + bias.row(0)[j];
    }
  }
  return y;
}

NaiveMatrix Columns(const NaiveMatrix& x, int first, int count) {
  NaiveMatrix y(x.rows, count);
  for (int t = 0; t < x.rows; ++t) std::copy_n(x.row(t) + first, count, y.row(t));
  return y;
}

void AddTo(NaiveMatrix* h, const NaiveMatrix& x) {
  for (size_t i = 0; i < h->values.size(); ++i) h->values[i] += x.values[i];
}

// Turns the pair (a, b) by `angle`.
void Turn(double angle, double multiplier, double* a, double* b) {
  const double x = *a, y = *b;
  *a = multiplier * (x * std::cos(angle) - y * std::sin(angle));
  *b = multiplier * (x * std::sin(angle) + y * std::cos(angle));
}

// Specification, 3.4: pairs (2i, 2i+1).
void TurnInterleaved(const std::vector<double>& f, int position, double multiplier, double* x) {
  for (size_t i = 0; i < f.size(); ++i) {
    Turn(position * f[i], multiplier, &x[2 * i], &x[2 * i + 1]);
  }
}

// Specification, 6.1: pairs (i, i + d/2).
void TurnHalves(const std::vector<double>& f, int position, double* x) {
  for (size_t i = 0; i < f.size(); ++i) Turn(position * f[i], 1.0, &x[i], &x[i + f.size()]);
}

double Dot(const double* a, const double* b, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

std::string LayerName(int layer) { return fmt::format("model.layers.{}.", layer); }

}  // namespace

// Specification, 3.5.
std::vector<double> NaiveModel::Frequencies() const {
  const RopeScaling& yarn = config_.rope_scaling;
  const int d = config_.qk_rope_head_dim;
  const double theta = config_.rope_theta;
  std::vector<double> f(d / 2);
  for (int i = 0; i < d / 2; ++i) f[i] = std::pow(theta, -2.0 * i / d);
  if (!yarn.is_yarn) return f;
  const auto corner = [&](double beta) {
    return d * std::log(yarn.original_max_position_embeddings / (2 * std::numbers::pi * beta)) /
           (2 * std::log(theta));
  };
  const double low = std::max(std::floor(corner(yarn.beta_fast)), 0.0);
  double high = std::min(std::ceil(corner(yarn.beta_slow)), d - 1.0);
  if (high == low) high += 0.001;
  for (int i = 0; i < d / 2; ++i) {
    const double ramp = std::clamp((i - low) / (high - low), 0.0, 1.0);
    f[i] = f[i] / yarn.factor * ramp + f[i] * (1 - ramp);
  }
  return f;
}

// Specification, 3.6: m(u) = 0.1 u ln(s) + 1, or 1 without scaling.
double NaiveModel::CosSinMultiplier() const {
  const RopeScaling& yarn = config_.rope_scaling;
  if (!yarn.is_yarn || yarn.factor <= 1) return 1;
  const auto m = [&](double u) { return 0.1 * u * std::log(yarn.factor) + 1; };
  return m(yarn.mscale) / m(yarn.mscale_all_dim);
}

double NaiveModel::SoftmaxScale() const {
  const RopeScaling& yarn = config_.rope_scaling;
  const double plain = std::pow(config_.qk_nope_head_dim + config_.qk_rope_head_dim, -0.5);
  if (!yarn.is_yarn || yarn.factor <= 1 || yarn.mscale_all_dim == 0) return plain;
  return plain * std::pow(0.1 * yarn.mscale_all_dim * std::log(yarn.factor) + 1, 2);
}

Status NaiveModel::LoadTensor(const Checkpoint& checkpoint, const std::string& name, int rows,
                              int cols) {
  ASSIGN_OR_RETURN(std::vector<double> values, ReadTensorValues(checkpoint, name));
  if (values.size() != static_cast<size_t>(rows) * cols) {
    return Status::Corrupt(fmt::format("naive model: {}: expected {} x {}, found {} elements", name,
                                       rows, cols, values.size()));
  }
  NaiveMatrix& matrix = weights_[name];
  matrix = NaiveMatrix(rows, cols);
  matrix.values = std::move(values);
  return Status::Ok();
}

// Specification, 2.2 to 2.4 and 2.7.
Status NaiveModel::LoadLayer(const Checkpoint& checkpoint, int layer) {
  const ModelConfig& c = config_;
  const std::string prefix = LayerName(layer);
  struct Wanted {
    std::string name;
    int rows, cols;
  };
  const int heads = c.num_attention_heads;
  const int q_rows = heads * (c.qk_nope_head_dim + c.qk_rope_head_dim);
  std::vector<Wanted> wanted = {
      {"input_layernorm.weight", 1, c.hidden_size},
      {"post_attention_layernorm.weight", 1, c.hidden_size},
      {"self_attn.kv_a_proj_with_mqa.weight", c.kv_lora_rank + c.qk_rope_head_dim, c.hidden_size},
      {"self_attn.kv_a_layernorm.weight", 1, c.kv_lora_rank},
      {"self_attn.kv_b_proj.weight", heads * (c.qk_nope_head_dim + c.v_head_dim), c.kv_lora_rank},
      {"self_attn.o_proj.weight", c.hidden_size, heads * c.v_head_dim}};
  if (c.q_lora_rank == 0) {
    wanted.push_back({"self_attn.q_proj.weight", q_rows, c.hidden_size});
  } else {
    wanted.push_back({"self_attn.q_a_proj.weight", c.q_lora_rank, c.hidden_size});
    wanted.push_back({"self_attn.q_a_layernorm.weight", 1, c.q_lora_rank});
    wanted.push_back({"self_attn.q_b_proj.weight", q_rows, c.q_lora_rank});
  }
  if (c.index_topk > 0) {
    const std::string indexer = "self_attn.indexer.";
    wanted.push_back({indexer + "wq_b.weight", c.index_n_heads * c.index_head_dim, c.q_lora_rank});
    wanted.push_back({indexer + "wk.weight", c.index_head_dim, c.hidden_size});
    wanted.push_back({indexer + "k_norm.weight", 1, c.index_head_dim});
    wanted.push_back({indexer + "k_norm.bias", 1, c.index_head_dim});
    wanted.push_back({indexer + "weights_proj.weight", c.index_n_heads, c.hidden_size});
  }
  const auto want_swiglu = [&](const std::string& name, int width) {
    wanted.push_back({name + "gate_proj.weight", width, c.hidden_size});
    wanted.push_back({name + "up_proj.weight", width, c.hidden_size});
    wanted.push_back({name + "down_proj.weight", c.hidden_size, width});
  };
  const bool is_mixture =
      c.n_routed_experts > 0 && layer >= c.first_k_dense_replace && layer % c.moe_layer_freq == 0;
  if (!is_mixture) {
    want_swiglu("mlp.", c.intermediate_size);
  } else {
    wanted.push_back({"mlp.gate.weight", c.n_routed_experts, c.hidden_size});
    if (c.topk_method == TopkMethod::kNoauxTc) {
      wanted.push_back({"mlp.gate.e_score_correction_bias", 1, c.n_routed_experts});
    }
    for (int e = 0; e < c.n_routed_experts; ++e) {
      want_swiglu(fmt::format("mlp.experts.{}.", e), c.moe_intermediate_size);
    }
    // One SwiGLU of S times the width, not S of them.
    if (c.n_shared_experts > 0) {
      want_swiglu("mlp.shared_experts.", c.n_shared_experts * c.moe_intermediate_size);
    }
  }
  for (const Wanted& w : wanted) {
    RETURN_IF_ERROR(LoadTensor(checkpoint, prefix + w.name, w.rows, w.cols));
  }
  return Status::Ok();
}

// Specification, 2.6. The copies of embedding and head may be missing: then the main ones serve.
Status NaiveModel::LoadMtp(const Checkpoint& checkpoint) {
  const ModelConfig& c = config_;
  const std::string prefix = LayerName(c.num_hidden_layers);
  RETURN_IF_ERROR(LoadLayer(checkpoint, c.num_hidden_layers));
  RETURN_IF_ERROR(LoadTensor(checkpoint, prefix + "enorm.weight", 1, c.hidden_size));
  RETURN_IF_ERROR(LoadTensor(checkpoint, prefix + "hnorm.weight", 1, c.hidden_size));
  RETURN_IF_ERROR(
      LoadTensor(checkpoint, prefix + "eh_proj.weight", c.hidden_size, 2 * c.hidden_size));
  RETURN_IF_ERROR(LoadTensor(checkpoint, prefix + "shared_head.norm.weight", 1, c.hidden_size));
  for (const char* copy : {"embed_tokens.weight", "shared_head.head.weight"}) {
    if (checkpoint.Find(prefix + copy) == nullptr) continue;
    RETURN_IF_ERROR(LoadTensor(checkpoint, prefix + copy, c.vocab_size, c.hidden_size));
  }
  return Status::Ok();
}

Result<NaiveModel> NaiveModel::Load(const Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(ModelConfig config, ModelConfig::Parse(checkpoint.config(), "config.json"));
  NaiveModel model(std::move(config));
  const ModelConfig& c = model.config_;
  RETURN_IF_ERROR(
      model.LoadTensor(checkpoint, "model.embed_tokens.weight", c.vocab_size, c.hidden_size));
  RETURN_IF_ERROR(model.LoadTensor(checkpoint, "model.norm.weight", 1, c.hidden_size));
  if (!c.tie_word_embeddings) {
    RETURN_IF_ERROR(model.LoadTensor(checkpoint, "lm_head.weight", c.vocab_size, c.hidden_size));
  }
  for (int layer = 0; layer < c.num_hidden_layers; ++layer) {
    RETURN_IF_ERROR(model.LoadLayer(checkpoint, layer));
  }
  const std::string mtp = LayerName(c.num_hidden_layers) + "eh_proj.weight";
  if (c.num_nextn_predict_layers > 0 && checkpoint.Find(mtp) != nullptr) {
    RETURN_IF_ERROR(model.LoadMtp(checkpoint));
  }
  return model;
}

// Specification, 6.1 and 6.3: which of the positions up to its own each query attends to.
NaiveSelection NaiveModel::SelectPositions(const std::string& prefix, const NaiveMatrix& x,
                                           const NaiveMatrix& cq, NaiveOutput* out) const {
  const ModelConfig& c = config_;
  const int heads = c.index_n_heads, width = c.index_head_dim;
  const std::string name = prefix + "self_attn.indexer.";
  NaiveMatrix q = Linear(cq, W(name + "wq_b.weight"));
  NaiveMatrix k = LayerNorm(Linear(x, W(name + "wk.weight")), W(name + "k_norm.weight"),
                            W(name + "k_norm.bias"));
  const NaiveMatrix w = Linear(x, W(name + "weights_proj.weight"));
  const std::vector<double> f = Frequencies();
  const auto turn = [&](int position, double* v) {
    if (c.is_indexer_rope_interleaved) {
      TurnInterleaved(f, position, 1.0, v);
    } else {
      TurnHalves(f, position, v);
    }
  };
  for (int t = 0; t < x.rows; ++t) {
    turn(t, k.row(t));
    for (int h = 0; h < heads; ++h) turn(t, q.row(t) + h * width);
  }
  NaiveSelection selection(x.rows);
  for (int t = 0; t < x.rows; ++t) {
    NaiveIndexScores scores(t + 1);
    for (int s = 0; s <= t; ++s) {
      for (int h = 0; h < heads; ++h) {
        const double dot = Dot(q.row(t) + h * width, k.row(s), width);
        scores.values[s] +=
            std::pow(width, -0.5) * std::pow(heads, -0.5) * w.row(t)[h] * std::max(dot, 0.0);
        scores.largest_dot[s] = std::max(scores.largest_dot[s], dot);
      }
    }
    selection[t] = scores.Best(c.index_topk, &out->clearest_choice_at_least);
  }
  return selection;
}

// Specification, 3.3, the naive form.
NaiveMatrix NaiveModel::Attention(const std::string& prefix, const NaiveMatrix& x, NaiveOutput* out,
                                  NaiveSelection* selection) const {
  const ModelConfig& c = config_;
  const int dn = c.qk_nope_head_dim, dr = c.qk_rope_head_dim, dv = c.v_head_dim;
  const std::string name = prefix + "self_attn.";
  NaiveMatrix cq, q;
  if (c.q_lora_rank == 0) {
    q = Linear(x, W(name + "q_proj.weight"));
  } else {
    cq = RmsNorm(Linear(x, W(name + "q_a_proj.weight")), W(name + "q_a_layernorm.weight"),
                 c.rms_norm_eps);
    q = Linear(cq, W(name + "q_b_proj.weight"));
  }
  const NaiveMatrix joint = Linear(x, W(name + "kv_a_proj_with_mqa.weight"));
  const NaiveMatrix latent =
      RmsNorm(Columns(joint, 0, c.kv_lora_rank), W(name + "kv_a_layernorm.weight"), c.rms_norm_eps);
  NaiveMatrix k_rope = Columns(joint, c.kv_lora_rank, dr);
  const NaiveMatrix kv = Linear(latent, W(name + "kv_b_proj.weight"));

  const std::vector<double> f = Frequencies();
  for (int t = 0; t < x.rows; ++t) {
    TurnInterleaved(f, t, CosSinMultiplier(), k_rope.row(t));
    for (int h = 0; h < c.num_attention_heads; ++h) {
      TurnInterleaved(f, t, CosSinMultiplier(), q.row(t) + h * (dn + dr) + dn);
    }
  }
  NaiveSelection visible(x.rows);
  if (c.index_topk > 0) {
    visible = SelectPositions(prefix, x, cq, out);
  } else {
    for (int t = 0; t < x.rows; ++t) {
      for (int s = 0; s <= t; ++s) visible[t].push_back(s);
    }
  }
  NaiveMatrix heads(x.rows, c.num_attention_heads * dv);
  for (int t = 0; t < x.rows; ++t) {
    for (int h = 0; h < c.num_attention_heads; ++h) {
      const double* query = q.row(t) + h * (dn + dr);
      std::vector<double> p;
      for (const int s : visible[t]) {
        p.push_back(SoftmaxScale() * (Dot(query, kv.row(s) + h * (dn + dv), dn) +
                                      Dot(query + dn, k_rope.row(s), dr)));
      }
      NaiveSoftmax(&p);
      for (size_t i = 0; i < p.size(); ++i) {
        const double* value = kv.row(visible[t][i]) + h * (dn + dv) + dn;
        for (int j = 0; j < dv; ++j) heads.row(t)[h * dv + j] += p[i] * value[j];
      }
    }
  }
  *selection = std::move(visible);
  return Linear(heads, W(name + "o_proj.weight"));
}

// Specification, 3.10: down(silu(gate x) * up x).
NaiveMatrix NaiveModel::SwiGlu(const std::string& prefix, const NaiveMatrix& x) const {
  NaiveMatrix inner = Linear(x, W(prefix + "gate_proj.weight"));
  const NaiveMatrix up = Linear(x, W(prefix + "up_proj.weight"));
  for (size_t i = 0; i < inner.values.size(); ++i) {
    const double g = inner.values[i];
    inner.values[i] = g / (1 + std::exp(-g)) * up.values[i];
  }
  return Linear(inner, W(prefix + "down_proj.weight"));
}

// Specification, 4: y = sum over the chosen of w_e Expert_e(x), and the shared expert unweighted.
NaiveMatrix NaiveModel::Mixture(const std::string& prefix, const NaiveMatrix& x,
                                NaiveOutput* out) const {
  const ModelConfig& c = config_;
  const NaiveMatrix logits = Linear(x, W(prefix + "gate.weight"));
  NaiveMatrix y(x.rows, c.hidden_size);
  if (c.n_shared_experts > 0) y = SwiGlu(prefix + "shared_experts.", x);
  for (int t = 0; t < x.rows; ++t) {
    const std::vector<double> g(logits.row(t), logits.row(t) + logits.cols);
    std::vector<NaiveExpertWeight> chosen;
    if (c.topk_method == TopkMethod::kNoauxTc) {
      const NaiveMatrix& bias = W(prefix + "gate.e_score_correction_bias");
      chosen = NaiveV3Gate(c, g, bias.values, &out->clearest_choice_at_least);
    } else {
      chosen = NaiveV2Gate(c, g, &out->clearest_choice_at_least);
    }
    NaiveMatrix one(1, c.hidden_size);
    std::copy_n(x.row(t), c.hidden_size, one.row(0));
    for (const NaiveExpertWeight& e : chosen) {
      const NaiveMatrix part = SwiGlu(fmt::format("{}experts.{}.", prefix, e.expert), one);
      for (int j = 0; j < c.hidden_size; ++j) y.row(t)[j] += e.weight * part.row(0)[j];
    }
  }
  return y;
}

void NaiveModel::DecoderLayer(int layer, NaiveMatrix* h, NaiveOutput* out) const {
  const std::string prefix = LayerName(layer);
  const double eps = config_.rms_norm_eps;
  NaiveSelection selection;
  AddTo(h,
        Attention(prefix, RmsNorm(*h, W(prefix + "input_layernorm.weight"), eps), out, &selection));
  if (config_.index_topk > 0 && layer < config_.num_hidden_layers) {
    out->selections.push_back(std::move(selection));
  }
  const NaiveMatrix x = RmsNorm(*h, W(prefix + "post_attention_layernorm.weight"), eps);
  const bool is_mixture = Has(prefix + "mlp.gate.weight");
  AddTo(h, is_mixture ? Mixture(prefix + "mlp.", x, out) : SwiGlu(prefix + "mlp.", x));
}

NaiveOutput NaiveModel::Run(std::span<const int> tokens) const {
  const ModelConfig& c = config_;
  const int n = static_cast<int>(tokens.size());
  NaiveOutput out;
  const auto embed = [&](const std::string& name, std::span<const int> ids) {
    NaiveMatrix h(static_cast<int>(ids.size()), c.hidden_size);
    for (int t = 0; t < h.rows; ++t) std::copy_n(W(name).row(ids[t]), c.hidden_size, h.row(t));
    return h;
  };
  const std::string head = c.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight";
  NaiveMatrix h = embed("model.embed_tokens.weight", tokens);
  for (int layer = 0; layer < c.num_hidden_layers; ++layer) DecoderLayer(layer, &h, &out);
  const NaiveMatrix final_hidden = RmsNorm(h, W("model.norm.weight"), c.rms_norm_eps);
  out.logits = Linear(final_hidden, W(head));

  // Specification, 5.1: the embedding first, the hidden state (after model.norm) second.
  const std::string mtp = LayerName(c.num_hidden_layers);
  if (!Has(mtp + "eh_proj.weight") || n < 2) return out;
  const std::string own_embed = mtp + "embed_tokens.weight";
  const std::string own_head = mtp + "shared_head.head.weight";
  const NaiveMatrix next =
      RmsNorm(embed(Has(own_embed) ? own_embed : "model.embed_tokens.weight", tokens.subspan(1)),
              W(mtp + "enorm.weight"), c.rms_norm_eps);
  const NaiveMatrix state = RmsNorm(final_hidden, W(mtp + "hnorm.weight"), c.rms_norm_eps);
  NaiveMatrix both(n - 1, 2 * c.hidden_size);
  for (int t = 0; t < n - 1; ++t) {
    std::copy_n(next.row(t), c.hidden_size, both.row(t));
    std::copy_n(state.row(t), c.hidden_size, both.row(t) + c.hidden_size);
  }
  NaiveMatrix u = Linear(both, W(mtp + "eh_proj.weight"));
  DecoderLayer(c.num_hidden_layers, &u, &out);
  out.mtp_logits = Linear(RmsNorm(u, W(mtp + "shared_head.norm.weight"), c.rms_norm_eps),
                          W(Has(own_head) ? own_head : head));
  return out;
}

}  // namespace hadal
