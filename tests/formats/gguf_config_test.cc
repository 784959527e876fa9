#include "formats/gguf_config.h"

#include <map>
#include <string>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hadal {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

using Value = std::variant<bool, int, double, std::string>;

// V2-Lite as the converters of 2024 wrote it.
std::map<std::string, Value> LegacyLite() {
  return {{"general.architecture", "deepseek2"},
          {"deepseek2.block_count", 27},
          {"deepseek2.context_length", 163840},
          {"deepseek2.embedding_length", 2048},
          {"deepseek2.feed_forward_length", 10944},
          {"deepseek2.attention.head_count", 16},
          {"deepseek2.attention.kv_lora_rank", 512},
          {"deepseek2.attention.key_length", 192},
          {"deepseek2.attention.value_length", 128},
          {"deepseek2.attention.layer_norm_rms_epsilon", static_cast<double>(1e-6f)},
          {"deepseek2.vocab_size", 102400},
          {"deepseek2.expert_count", 64},
          {"deepseek2.expert_used_count", 6},
          {"deepseek2.expert_shared_count", 2},
          {"deepseek2.expert_feed_forward_length", 1408},
          {"deepseek2.expert_weights_scale", 1.0},
          {"deepseek2.leading_dense_block_count", 1},
          {"deepseek2.rope.dimension_count", 64},
          {"deepseek2.rope.freq_base", 10000.0},
          {"deepseek2.rope.scaling.type", "yarn"},
          {"deepseek2.rope.scaling.factor", 40.0},
          {"deepseek2.rope.scaling.original_context_length", 4096},
          {"deepseek2.rope.scaling.yarn_log_multiplier", static_cast<double>(0.0707f)},
          {"tokenizer.ggml.bos_token_id", 100000},
          {"tokenizer.ggml.eos_token_id", 100001}};
}

Result<GgufConfig> Read(const std::map<std::string, Value>& keys,
                        const std::vector<GgufTensor>& tensors = {}) {
  GgufFile file;
  for (const auto& [key, value] : keys) {
    const GgufValue::Any any = std::visit(
        [](const auto& held) -> GgufValue::Any {
          using T = std::decay_t<decltype(held)>;
          if constexpr (std::is_same_v<T, int>) return static_cast<int64_t>(held);
          if constexpr (std::is_same_v<T, std::string>) return std::string_view(held);
          if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, double>) return held;
        },
        value);
    file.metadata.emplace_back(key, GgufValue(any));
  }
  return ReadGgufConfig(file, tensors, "some.gguf");
}

TEST(GgufConfig, ReadsV2LiteOf2024AndSaysWhatItSupplied) {
  const auto read = Read(LegacyLite());
  ASSERT_TRUE(read.ok()) << read.status().message();
  const Json& config = read->config;
  EXPECT_EQ(config["model_type"], "deepseek_v2");
  EXPECT_EQ(config["scoring_func"], "softmax");
  EXPECT_EQ(config["topk_method"], "greedy");
  EXPECT_EQ(config["norm_topk_prob"], false);
  EXPECT_EQ(config["qk_nope_head_dim"], 128);
  EXPECT_TRUE(config["q_lora_rank"].is_null());
  EXPECT_EQ(config["rms_norm_eps"], 1e-6);  // not the float's digits
  EXPECT_EQ(config["rope_scaling"]["mscale"], 0.707);
  EXPECT_EQ(config["rope_scaling"]["mscale_all_dim"], 0.707);
  EXPECT_EQ(config["rope_scaling"]["beta_fast"], 32.0);
  EXPECT_EQ(config["eos_token_id"], Json::array({100001}));
  EXPECT_THAT(read->supplied, Contains(HasSubstr("expert_gating_func: softmax")));
  EXPECT_THAT(read->supplied,
              Contains(HasSubstr("expert_group_count, expert_group_used_count: 1")));
}

TEST(GgufConfig, SuppliesTheGroupsOfThePublishedShapes) {
  auto v3 = LegacyLite();
  v3["deepseek2.expert_count"] = 256;
  v3["deepseek2.expert_gating_func"] = 2;
  v3["deepseek2.expert_weights_norm"] = true;
  const auto of_v3 = Read(v3);
  ASSERT_TRUE(of_v3.ok());
  EXPECT_EQ(of_v3->config["model_type"], "deepseek_v3");
  EXPECT_EQ(of_v3->config["topk_method"], "noaux_tc");
  EXPECT_EQ(of_v3->config["n_group"], 8);
  EXPECT_EQ(of_v3->config["topk_group"], 4);
  EXPECT_THAT(of_v3->warnings, IsEmpty());

  auto v2 = LegacyLite();
  v2["deepseek2.expert_count"] = 160;
  v2.erase("deepseek2.expert_weights_scale");
  const auto of_v2 = Read(v2);
  ASSERT_TRUE(of_v2.ok());
  EXPECT_EQ(of_v2->config["topk_method"], "group_limited_greedy");
  EXPECT_EQ(of_v2->config["n_group"], 8);
  EXPECT_EQ(of_v2->config["topk_group"], 3);
  EXPECT_EQ(of_v2->config["routed_scaling_factor"], 16.0);
}

TEST(GgufConfig, WarnsOfAV3ModelThatForgotToNormaliseItsExperts) {
  auto v3 = LegacyLite();
  v3["deepseek2.expert_gating_func"] = 2;
  const auto read = Read(v3);
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(read->warnings, Contains(HasSubstr("expert_weights_norm")));
}

TEST(GgufConfig, TakesTheWidthOfAHeadFromTheKeysOfTheSplitForm) {
  auto split = LegacyLite();
  split["deepseek2.attention.key_length"] = 576;
  split["deepseek2.attention.value_length"] = 512;
  split["deepseek2.attention.key_length_mla"] = 192;
  split["deepseek2.attention.value_length_mla"] = 128;
  const auto read = Read(split);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->config["qk_nope_head_dim"], 128);
  EXPECT_EQ(read->config["v_head_dim"], 128);

  split.erase("deepseek2.attention.key_length_mla");
  split.erase("deepseek2.attention.value_length_mla");
  EXPECT_THAT(Read(split).status().message(), HasSubstr("key_length_mla"));
  const auto by_shape =
      Read(split, {{.name = "blk.0.attn_q.weight", .sizes = {2048, 16 * 192}, .bytes = {}},
                   {.name = "blk.0.attn_output.weight", .sizes = {16 * 128, 2048}, .bytes = {}}});
  ASSERT_TRUE(by_shape.ok()) << by_shape.status().message();
  EXPECT_EQ(by_shape->config["qk_nope_head_dim"], 128);
  EXPECT_EQ(by_shape->config["v_head_dim"], 128);
}

TEST(GgufConfig, CountsTheMtpBlockApart) {
  auto keys = LegacyLite();
  keys["deepseek2.nextn_predict_layers"] = 1;
  const auto read = Read(keys);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->config["num_hidden_layers"], 26);
  EXPECT_EQ(read->config["num_nextn_predict_layers"], 1);
}

TEST(GgufConfig, ADroppedHeadMeansATiedOne) {
  const auto read = Read(LegacyLite());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->config["tie_word_embeddings"], true);
  const auto own =
      Read(LegacyLite(), {{.name = "output.weight", .sizes = {2048, 102400}, .bytes = {}}});
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->config["tie_word_embeddings"], false);
}

TEST(GgufConfig, RefusesWithFileAndKey) {
  const auto refusal = [](const std::string& key, const Value& value) {
    auto keys = LegacyLite();
    keys[key] = value;
    return Read(keys).status().message();
  };
  EXPECT_THAT(refusal("general.architecture", "llama"),
              HasSubstr("some.gguf: general.architecture: expected deepseek2 or deepseek32"));
  EXPECT_THAT(refusal("deepseek2.block_count", -1),
              HasSubstr("deepseek2.block_count: expected an integer from 1"));
  EXPECT_THAT(refusal("deepseek2.expert_gating_func", 3), HasSubstr("expert_gating_func"));
  EXPECT_THAT(refusal("deepseek2.rope.scaling.type", "linear"), HasSubstr("rope.scaling.type"));
  EXPECT_THAT(refusal("deepseek2.nextn_predict_layers", 27), HasSubstr("nextn_predict_layers"));
  auto keys = LegacyLite();
  keys.erase("deepseek2.embedding_length");
  EXPECT_THAT(Read(keys).status().message(),
              HasSubstr("embedding_length: expected an integer, found nothing"));
}

}  // namespace
}  // namespace hadal
