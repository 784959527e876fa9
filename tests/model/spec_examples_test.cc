// The specification's worked examples of whole parts of a layer, on toy sizes.
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backend/backend.h"
#include "base/json.h"
#include "model/cache_size.h"
#include "model/mla_attention.h"
#include "model/mtp_input.h"
#include "model/rope_table.h"
#include "model/token_indexer.h"
#include "tests/support/files.h"

namespace hadal {
namespace {

std::unique_ptr<Backend> TestBackend() {
  auto backend = CreateBackend({.num_threads = 2, .kernels = ""});
  EXPECT_TRUE(backend.ok());
  return std::move(backend).value();
}

// A float32 weight and its memory.
struct OwnedWeight {
  std::vector<float> values;
  QuantizedMatrix matrix;

  explicit OwnedWeight(const Json& rows) {
    for (const Json& row : rows) {
      for (const Json& value : row) values.push_back(value.get<float>());
    }
    matrix.rows = static_cast<int>(rows.size());
    matrix.cols = static_cast<int>(rows[0].size());
    matrix.data = reinterpret_cast<const std::byte*>(values.data());
  }
};

OwnedWeight Identity(int size) {
  Json rows = Json::array();
  for (int r = 0; r < size; ++r) {
    rows.push_back(Json::array());
    for (int c = 0; c < size; ++c) rows.back().push_back(r == c ? 1.0 : 0.0);
  }
  return OwnedWeight(rows);
}

void Fill(const Json& rows, FloatMatrix out) {
  for (int r = 0; r < static_cast<int>(rows.size()); ++r) {
    for (size_t c = 0; c < rows[static_cast<size_t>(r)].size(); ++c) {
      out.row(r)[c] = rows[static_cast<size_t>(r)][c].get<float>();
    }
  }
}

void ExpectRows(ConstFloatMatrix found, const Json& expected, double tolerance,
                const std::string& what) {
  for (int r = 0; r < static_cast<int>(expected.size()); ++r) {
    for (size_t c = 0; c < expected[static_cast<size_t>(r)].size(); ++c) {
      EXPECT_NEAR(found.row(r)[c], expected[static_cast<size_t>(r)][c].get<double>(), tolerance)
          << what << " row " << r << " column " << c;
    }
  }
}

// Everything that one layer's attention needs to run on positions 0, 1, ...
struct Bench {
  std::unique_ptr<Backend> backend = TestBackend();
  ModelConfig config;
  Activations activations;
  LatentCache cache;
  std::vector<int32_t> positions, slots;
  std::vector<int32_t> block_ids = {0};
  std::vector<AttentionRange> ranges;

  Bench(const ModelConfig& model_config, int num_tokens) : config(model_config) {
    activations = std::move(Activations::Create(config, num_tokens, 1, backend.get())).value();
    cache = std::move(LatentCache::Create(config, 1, 1, CacheType::kF32, backend.get())).value();
    EXPECT_TRUE(backend
                    ->Prepare({.max_step_tokens = num_tokens,
                               .max_context_tokens = kBlockTokens,
                               .shape = AttentionShape(config),
                               .hidden_size = config.hidden_size,
                               .index_n_heads = config.index_n_heads,
                               .widest_input = 4096})
                    .ok());
    for (int p = 0; p < num_tokens; ++p) {
      positions.push_back(p);
      slots.push_back(p);
    }
    const RopeTable rope(config);
    if (config.has_indexer()) {
      rope.FillPlainAngles(positions, activations.index_cos.Rows(0, num_tokens),
                           activations.index_sin.Rows(0, num_tokens));
    }
    rope.FillAngles(positions, activations.cos.Rows(0, num_tokens),
                    activations.sin.Rows(0, num_tokens));
  }

  ForwardBatch Batch(bool is_absorbed, int first_sparse) {
    const int num_tokens = static_cast<int>(positions.size());
    ranges.clear();
    if (first_sparse > 0) {
      ranges.push_back(
          {.num_tokens = first_sparse, .block_ids = block_ids, .is_absorbed = is_absorbed});
    }
    if (first_sparse < num_tokens) {
      ranges.push_back({.token_begin = first_sparse,
                        .num_tokens = num_tokens - first_sparse,
                        .first_position = first_sparse,
                        .block_ids = block_ids,
                        .is_absorbed = is_absorbed,
                        .is_sparse = true});
    }
    return {.tokens = positions,
            .positions = positions,
            .slots = slots,
            .ranges = ranges,
            .has_sparse_range = first_sparse < num_tokens};
  }
};

TEST(SpecExamples, AttentionBlocksAgreeInBothForms) {
  const Json examples = ReadGoldenJson("spec/model.json");
  for (const char* name : {"mla_tiny_no_q_lora", "mla_tiny_q_lora"}) {
    const Json& inputs = examples.at(name)["inputs"];
    const Json& expected = examples.at(name)["expected"];
    const Json& weights = inputs["weights"];
    ModelConfig config;
    config.hidden_size = inputs["hidden"];
    config.num_hidden_layers = 1;
    config.vocab_size = 1;
    config.num_attention_heads = inputs["heads"];
    config.qk_nope_head_dim = inputs["qk_nope"];
    config.qk_rope_head_dim = inputs["qk_rope"];
    config.v_head_dim = inputs["v_head"];
    config.kv_lora_rank = inputs["kv_lora_rank"];
    config.q_lora_rank = HasValue(inputs, "q_lora_rank") ? inputs["q_lora_rank"].get<int>() : 0;
    config.rope_theta = 10000.0;  // gives the example's frequencies 1 and 0.01

    const OwnedWeight kv_a(weights["kv_a"]), kv_b(weights["kv_b"]), out(weights["o"]);
    const bool has_latent = config.q_lora_rank > 0;
    const OwnedWeight q(weights[has_latent ? "q_b" : "q"]), q_a(weights[has_latent ? "q_a" : "q"]);
    AttentionWeights attention;
    if (has_latent) {
      attention.q_a = q_a.matrix;
      attention.q_a_norm = weights["q_a_norm"].get<std::vector<float>>();
      attention.q_b = q.matrix;
    } else {
      attention.q = q.matrix;
    }
    attention.kv_a = kv_a.matrix;
    attention.kv_a_norm = weights["kv_a_norm"].get<std::vector<float>>();
    attention.kv_b = kv_b.matrix;
    attention.out = out.matrix;

    for (const bool is_absorbed : {false, true}) {
      Bench bench(config, static_cast<int>(inputs["x"].size()));
      Fill(inputs["x"], bench.activations.normed);
      MlaAttention layer(bench.config, attention, 0, bench.backend.get());
      layer.Forward(bench.Batch(is_absorbed, 3), &bench.cache, &bench.activations);
      const std::string what = std::string(name) + (is_absorbed ? " absorbed" : " expanded");
      ExpectRows(bench.activations.hidden, expected["output"], 2e-5, what);
      const CacheRows rows = bench.cache.latents(0);
      const FloatMatrix cached = {reinterpret_cast<float*>(rows.data), rows.rows, rows.cols,
                                  rows.cols};
      ExpectRows(cached.Cols(0, config.kv_lora_rank), expected["cached_latent"], 1e-5,
                 what + " latent");
      ExpectRows(cached.Cols(config.kv_lora_rank, config.qk_rope_head_dim),
                 expected["cached_rope_key"], 1e-5, what + " rope key");
    }
  }
}

// The query at position 3 scores its keys 0.806, -0.122, 0.649, -0.017: which are taken first tells
// the order.
TEST(SpecExamples, IndexerTakesThePositionsOfTheLargestScores) {
  const Json examples = ReadGoldenJson("spec/model.json");
  const Json& inputs = examples.at("dsa_index_scores")["inputs"];
  const std::vector<std::vector<int>> taken = {{0}, {0, 2}, {0, 2, 3}};
  ASSERT_EQ(examples.at("dsa_index_scores")["expected"]["top2_exact"].get<std::vector<int>>(),
            taken[1]);
  for (int topk = 1; topk <= 3; ++topk) {
    ModelConfig config;
    config.hidden_size = 8;
    config.num_hidden_layers = 1;
    config.vocab_size = 1;
    config.num_attention_heads = 1;
    config.qk_nope_head_dim = 2;
    config.qk_rope_head_dim = 4;
    config.v_head_dim = 2;
    config.kv_lora_rank = 2;
    config.q_lora_rank = 16;
    config.index_n_heads = 2;
    config.index_head_dim = 8;
    config.index_topk = topk;

    // Identities hand the example's numbers through; the head weights are met by the last row of x.
    const OwnedWeight q_b = Identity(16), k = Identity(8);
    const Json& x = inputs["wk_output"];
    double square = 0;
    for (const Json& value : x[3]) square += value.get<double>() * value.get<double>();
    Json head_rows = Json::array();
    for (const Json& weight : inputs["weights_proj_output"]) {
      head_rows.push_back(Json::array());
      for (const Json& value : x[3]) {
        head_rows.back().push_back(weight.get<double>() * value.get<double>() / square);
      }
    }
    const OwnedWeight head_weights(head_rows);
    IndexerWeights weights;
    weights.q_b = q_b.matrix;
    weights.k = k.matrix;
    weights.weights = head_weights.matrix;
    weights.k_norm = inputs["k_norm_weight"].get<std::vector<float>>();
    weights.k_norm_bias = inputs["k_norm_bias"].get<std::vector<float>>();

    Bench bench(config, 4);
    Fill(x, bench.activations.normed);
    Json query = Json::array({Json::array()});
    for (const Json& head : inputs["q_raw"]) {
      for (const Json& value : head) query[0].push_back(value);
    }
    Fill(query, bench.activations.query_latent.Rows(3, 1));
    TokenIndexer indexer(bench.config, weights, 0, bench.backend.get());
    indexer.Select(bench.Batch(true, topk), &bench.cache, &bench.activations);
    const PositionSelection& selection = bench.activations.selection;
    ASSERT_EQ(selection.counts[3], topk);
    const int32_t* positions = selection.positions.row_data(3);
    EXPECT_EQ(std::vector<int>(positions, positions + topk), taken[static_cast<size_t>(topk - 1)]);
  }
}

TEST(SpecExamples, MtpInputTakesTheEmbeddingFirst) {
  const Json example = ReadGoldenJson("spec/model.json").at("mtp_input");
  const Json& inputs = example["inputs"];
  const OwnedWeight eh_proj(inputs["eh_proj[4][8]"]);
  MtpWeights weights;
  weights.enorm = inputs["enorm"].get<std::vector<float>>();
  weights.hnorm = inputs["hnorm"].get<std::vector<float>>();
  weights.eh_proj = eh_proj.matrix;
  auto embedding = inputs["embedding_of_next_token"].get<std::vector<float>>();
  auto hidden = inputs["hidden"].get<std::vector<float>>();
  std::vector<float> joined(8), out(4);
  const std::unique_ptr<Backend> backend = TestBackend();
  ProjectMtpInput(weights, 1e-6f, FloatMatrix{embedding.data(), 1, 4, 4},
                  FloatMatrix{hidden.data(), 1, 4, 4}, {joined.data(), 1, 8, 8},
                  {out.data(), 1, 4, 4}, backend.get());
  ExpectRows(FloatMatrix{joined.data(), 1, 8, 8}, Json::array({example["expected"]["concat"]}),
             1e-5, "concat");
  ExpectRows(FloatMatrix{out.data(), 1, 4, 4}, Json::array({example["expected"]["x"]}), 1e-5, "x");
}

TEST(SpecExamples, CachedValuesPerTokenAndLayer) {
  const Json expected = ReadGoldenJson("spec/model.json").at("kv_bytes")["expected"];
  ModelConfig config;
  config.kv_lora_rank = 512;
  config.qk_rope_head_dim = 64;
  for (const auto& [name, layers] :
       {std::pair("V2-Lite", 27), std::pair("V2-236B", 60), std::pair("V3-671B", 61)}) {
    const Json& bytes = expected.at(name);
    EXPECT_EQ(CachedValuesPerLayer(config), bytes["values_per_token_layer"].get<int64_t>()) << name;
    // The example counts bfloat16; float32 takes twice as much.
    EXPECT_EQ(CacheBytesPerToken(config, layers),
              2 * bytes["bf16_bytes_token_all_layers"].get<int64_t>())
        << name;
  }
}

}  // namespace
}  // namespace hadal
