#include "model/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"
#include "tests/support/model_configs.h"

namespace hadal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What Parse says of a config that it refuses; empty when it accepts.
std::string Refusal(const Json& config) {
  return ModelConfig::Parse(config, "config.json").status().message();
}

ModelConfig Parsed(const Json& config) {
  Result<ModelConfig> parsed = ModelConfig::Parse(config, "config.json");
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return parsed.ok() ? parsed.value() : ModelConfig();
}

TEST(ModelConfig, ReadsV3) {
  const ModelConfig config = Parsed(V3Config());
  EXPECT_EQ(config.model_type, "deepseek_v3");
  EXPECT_EQ(config.q_lora_rank, 1536);
  EXPECT_EQ(config.latent_dim(), 576);
  EXPECT_EQ(config.qk_head_dim(), 192);
  EXPECT_EQ(config.num_stored_layers(), 62);
  EXPECT_FALSE(config.is_moe_layer(2));
  EXPECT_TRUE(config.is_moe_layer(3));
  EXPECT_FALSE(config.has_indexer());
  EXPECT_THAT(config.eos_token_ids, ElementsAre(1));
}

// C058: quality fell with length, the scale was that of the unscaled rotation.
TEST(ModelConfig, SoftmaxScaleIsThatOfTheSpecification) {
  const Json example = ReadGoldenJson("spec/number_formats.json")["softmax_scale"]["expected"];
  std::vector<double> expected;
  for (const auto& [name, values] : example.items()) expected.push_back(values["softmax_scale"]);
  ASSERT_EQ(expected.size(), 3u);  // 0.707 models, 1.0 models, no scaling
  EXPECT_NEAR(Parsed(V2LiteConfig()).softmax_scale(), expected[0], 1e-12);
  EXPECT_NEAR(Parsed(V3Config()).softmax_scale(), expected[1], 1e-12);
  EXPECT_NEAR(Parsed(With(V3Config(), "rope_scaling", nullptr)).softmax_scale(), expected[2],
              1e-12);
}

TEST(ModelConfig, AbsentMscaleKeysLeaveTheSoftmaxScaleAlone) {
  Json config = V3Config();
  config["rope_scaling"].erase("mscale");
  config["rope_scaling"].erase("mscale_all_dim");
  const ModelConfig parsed = Parsed(config);
  EXPECT_NEAR(parsed.softmax_scale(), 0.0721687836487, 1e-12);
  EXPECT_EQ(parsed.rope_scaling.mscale, 1.0);
  EXPECT_EQ(parsed.rope_scaling.mscale_all_dim, 0.0);
}

// C060.
TEST(ModelConfig, BothSpellingsOfTheRopeKeysMeanTheSame) {
  const ModelConfig old_spelling = Parsed(V3Config());
  Json rope = V3Config()["rope_scaling"];
  rope.erase("type");
  rope["rope_type"] = "yarn";
  rope["rope_theta"] = 10000.0;
  const Json renamed =
      With(Without(V3Config(), {"rope_scaling", "rope_theta"}), "rope_parameters", rope);
  const ModelConfig new_spelling = Parsed(renamed);
  EXPECT_EQ(new_spelling.rope_scaling, old_spelling.rope_scaling);
  EXPECT_EQ(new_spelling.rope_theta, old_spelling.rope_theta);
  EXPECT_TRUE(new_spelling.rope_scaling.is_yarn);

  rope["rope_theta"] = 5e5;
  EXPECT_EQ(Parsed(With(renamed, "rope_parameters", rope)).rope_theta, 5e5);
  EXPECT_EQ(Parsed(With(renamed, "rope_parameters", {{"rope_theta", 7e3}})).rope_theta, 7e3);
}

// C060.
TEST(ModelConfig, RopeSettingsThatWouldSilentlyNotBeUsedAreRefused) {
  const auto refusal = [](const char* key, Json value) {
    Json config = V3Config();
    config["rope_scaling"][key] = std::move(value);
    return Refusal(config);
  };
  EXPECT_THAT(refusal("type", "linear"),
              HasSubstr("config.json: rope_scaling: rope_type: expected yarn or default"));
  EXPECT_THAT(refusal("original_max_position_embeddings", nullptr),
              HasSubstr("original_max_position_embeddings"));
  EXPECT_THAT(refusal("factor", nullptr), HasSubstr("factor: expected"));
  EXPECT_THAT(refusal("factor", 0.5), HasSubstr("expected a number of at least 1, found 0.5"));
  EXPECT_THAT(refusal("type", nullptr), HasSubstr("rope_type: expected a value beside factor"));
  EXPECT_THAT(refusal("rope_type", "linear"), HasSubstr("expected the same as type"));
  EXPECT_THAT(refusal("attention_factor", 1.2), HasSubstr("attention_factor"));
  EXPECT_THAT(refusal("truncate", false), HasSubstr("truncate"));
  EXPECT_THAT(refusal("beta_fast", 0.5), HasSubstr("beta_fast"));
  EXPECT_THAT(refusal("rope_theta", 5e5), HasSubstr("rope_theta: expected 500000"));
  EXPECT_THAT(Refusal(With(V3Config(), "rope_scaling", "yarn")), HasSubstr("rope_scaling"));
  EXPECT_THAT(Refusal(With(V3Config(), "rope_parameters", {{"rope_type", "default"}})),
              HasSubstr("rope_parameters: expected the same as rope_scaling"));
}

// C074.
TEST(ModelConfig, AMissingGateFunctionScaleOrNormFlagGetsItsOwnFamilysDefault) {
  const std::vector<std::string> gate_keys = {"scoring_func",   "topk_method",
                                              "norm_topk_prob", "routed_scaling_factor",
                                              "n_group",        "topk_group"};
  const ModelConfig v3 = Parsed(Without(V3Config(), gate_keys));
  EXPECT_EQ(v3.scoring_func, ScoringFunc::kSigmoid);
  EXPECT_EQ(v3.topk_method, TopkMethod::kNoauxTc);
  EXPECT_TRUE(v3.norm_topk_prob);
  EXPECT_EQ(v3.routed_scaling_factor, 2.5);
  EXPECT_EQ(v3.n_group, 8);
  EXPECT_EQ(v3.topk_group, 4);

  const ModelConfig lite = Parsed(Without(V2LiteConfig(), gate_keys));
  EXPECT_EQ(lite.scoring_func, ScoringFunc::kSoftmax);
  EXPECT_EQ(lite.topk_method, TopkMethod::kGreedy);
  EXPECT_FALSE(lite.norm_topk_prob);
  EXPECT_EQ(lite.routed_scaling_factor, 1.0);

  Json v2 = With(Without(V2LiteConfig(), gate_keys), "q_lora_rank", 1536);
  v2["n_routed_experts"] = 160;
  const ModelConfig large = Parsed(v2);
  EXPECT_EQ(large.topk_method, TopkMethod::kGroupLimitedGreedy);
  EXPECT_EQ(large.routed_scaling_factor, 16.0);
  EXPECT_EQ(large.n_group, 8);
  EXPECT_EQ(large.topk_group, 3);
}

// C074.
TEST(ModelConfig, AGateWithoutAFamilyDefaultIsRefused) {
  Json v2 = With(V2LiteConfig(), "q_lora_rank", 1536);
  EXPECT_EQ(Refusal(v2), "");
  EXPECT_THAT(Refusal(Without(v2, {"routed_scaling_factor"})), HasSubstr("routed_scaling_factor"));
  EXPECT_THAT(Refusal(Without(v2, {"topk_method"})), HasSubstr("topk_method"));
  const Json other_v3 = With(V3Config(), "n_routed_experts", 64);
  EXPECT_EQ(Refusal(other_v3), "");
  EXPECT_THAT(Refusal(Without(other_v3, {"n_group"})), HasSubstr("n_group"));
  EXPECT_THAT(Refusal(Without(other_v3, {"topk_group"})), HasSubstr("topk_group"));
  EXPECT_THAT(Refusal(With(V3Config(), "routed_scaling_factor", 0)),
              HasSubstr("routed_scaling_factor: expected a number above 0, found 0"));
  EXPECT_THAT(Refusal(With(V3Config(), "scoring_func", "tanh")),
              HasSubstr("scoring_func: expected softmax or sigmoid, found \"tanh\""));
  EXPECT_THAT(Refusal(With(V3Config(), "scoring_func", "softmax")), HasSubstr("scoring_func"));
}

// C076.
TEST(ModelConfig, ManyExpertsLoad) {
  for (const int count : {256, 384, 512}) {
    EXPECT_EQ(Parsed(With(V3Config(), "n_routed_experts", count)).n_routed_experts, count);
  }
}

// C064.
TEST(ModelConfig, TheLiteModelsHaveNoQueryLatent) {
  EXPECT_EQ(Parsed(V2LiteConfig()).q_lora_rank, 0);
  EXPECT_EQ(Parsed(Without(V2LiteConfig(), {"q_lora_rank"})).q_lora_rank, 0);
}

TEST(ModelConfig, ExpertsThatDoNotFitIntoTheirGroupsAreRefused) {
  EXPECT_THAT(Refusal(With(V3Config(), "n_group", 7)),
              HasSubstr("n_group: expected a divisor of n_routed_experts, 256, found 7"));
  EXPECT_THAT(Refusal(With(V3Config(), "topk_group", 9)),
              HasSubstr("topk_group: expected at most n_group, 8, found 9"));
  EXPECT_THAT(Refusal(With(V3Config(), "num_experts_per_tok", 129)),
              HasSubstr("num_experts_per_tok: expected at most 128"));
  EXPECT_THAT(Refusal(With(V3Config(), "n_group", 256)), HasSubstr("two experts in a group"));
}

TEST(ModelConfig, SizesThatNoModelCanHaveAreRefused) {
  for (const char* key : {"hidden_size", "vocab_size", "num_hidden_layers", "num_attention_heads",
                          "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
                          "moe_intermediate_size", "intermediate_size", "num_experts_per_tok",
                          "n_routed_experts", "n_shared_experts", "first_k_dense_replace"}) {
    EXPECT_THAT(Refusal(Without(V3Config(), {key})), HasSubstr(key));
    EXPECT_THAT(Refusal(With(V3Config(), key, -1)), HasSubstr(key));
    EXPECT_THAT(Refusal(With(V3Config(), key, int64_t{1} << 40)), HasSubstr(key));
    EXPECT_THAT(Refusal(With(V3Config(), key, "7")), HasSubstr(key));
  }
  EXPECT_THAT(Refusal(With(V3Config(), "qk_rope_head_dim", 63)), HasSubstr("an even number"));
  EXPECT_THAT(Refusal(With(V3Config(), "num_attention_heads", 1 << 24)),
              HasSubstr("num_attention_heads"));
  EXPECT_THAT(Refusal(With(V3Config(), "rms_norm_eps", 0)), HasSubstr("rms_norm_eps"));
}

TEST(ModelConfig, OddSizesAreFine) {
  Json config = V2LiteConfig();
  config["hidden_size"] = 33;
  config["vocab_size"] = 101;
  config["num_attention_heads"] = 3;
  config["kv_lora_rank"] = 5;
  config["moe_intermediate_size"] = 7;
  config["qk_rope_head_dim"] = 2;
  EXPECT_EQ(Refusal(config), "");
}

TEST(ModelConfig, OtherArchitecturesAreRefusedByName) {
  EXPECT_THAT(Refusal(With(V3Config(), "model_type", "llama")),
              HasSubstr("model_type: expected deepseek_v2, deepseek_v3 or deepseek_v32, found "
                        "\"llama\""));
  EXPECT_THAT(Refusal(Without(V3Config(), {"model_type"})), HasSubstr("found nothing"));
  EXPECT_THAT(Refusal(With(V3Config(), "hidden_act", "gelu")), HasSubstr("hidden_act"));
  EXPECT_THAT(Refusal(With(V3Config(), "attention_bias", true)), HasSubstr("attention_bias"));
  EXPECT_THAT(Refusal(With(V3Config(), "rope_interleave", false)), HasSubstr("rope_interleave"));
  EXPECT_THAT(Refusal(Json(nullptr)), HasSubstr("expected a JSON object, found nothing"));
  EXPECT_THAT(Refusal(Json::array()), HasSubstr("expected a JSON object, found array"));
}

TEST(ModelConfig, TheArchitectureStandsInForAMissingModelType) {
  const Json config = With(Without(V3Config(), {"model_type"}), "architectures",
                           Json::array({"DeepseekV3ForCausalLM"}));
  EXPECT_EQ(Parsed(config).model_type, "deepseek_v3");
  EXPECT_EQ(Parsed(With(V2LiteConfig(), "model_type", "deepseek")).model_type, "deepseek_v2");
}

TEST(ModelConfig, QuantisationThatWeCannotReadIsRefusedByName) {
  EXPECT_THAT(Refusal(With(V3Config(), "quantization_config", {{"quant_method", "bitsandbytes"}})),
              HasSubstr("quantization_config: quant_method: expected fp8, hadal, "
                        "compressed-tensors, gptq or awq, found \"bitsandbytes\""));
  Json config = V3Config();
  config["quantization_config"]["weight_block_size"] = {64, 64};
  EXPECT_THAT(Refusal(config), HasSubstr("weight_block_size: expected [128, 128]"));
}

TEST(ModelConfig, TheIndexerNeedsAllOfItsKeys) {
  Json config = With(V3Config(), "model_type", "deepseek_v32");
  EXPECT_THAT(Refusal(config), HasSubstr("index_n_heads"));
  config["index_n_heads"] = 64;
  config["index_head_dim"] = 128;
  EXPECT_THAT(Refusal(config), HasSubstr("index_topk"));
  config["index_topk"] = 2048;
  const ModelConfig parsed = Parsed(config);
  EXPECT_TRUE(parsed.has_indexer());
  EXPECT_FALSE(parsed.is_indexer_rope_interleaved);
  EXPECT_TRUE(Parsed(With(config, "indexer_rope_interleave", true)).is_indexer_rope_interleaved);
  EXPECT_THAT(Refusal(With(config, "index_head_dim", 32)), HasSubstr("index_head_dim"));
  EXPECT_THAT(Refusal(With(config, "q_lora_rank", nullptr)), HasSubstr("q_lora_rank"));
}

// C008.
TEST(ModelConfig, EndTokensMayBeAList) {
  EXPECT_THAT(Parsed(With(V3Config(), "eos_token_id", {7, 9})).eos_token_ids, ElementsAre(7, 9));
  EXPECT_THAT(Parsed(With(V3Config(), "eos_token_id", nullptr)).eos_token_ids, ElementsAre());
  EXPECT_THAT(Refusal(With(V3Config(), "eos_token_id", {7, -9})), HasSubstr("eos_token_id"));
  EXPECT_EQ(Parsed(Without(V3Config(), {"bos_token_id"})).bos_token_id, -1);
}

}  // namespace
}  // namespace hadal
