#include "model/weight_formats.h"

#include <map>

#include <gtest/gtest.h>

#include "base/json.h"
#include "model/model_config.h"
#include "tests/support/model_configs.h"

namespace hadal {
namespace {

std::map<std::string, std::optional<GroupShape>> FormatsOfV32(const GroupShape& shape) {
  const Result<ModelConfig> config = ModelConfig::Parse(V32Config(), "v3.2");
  std::map<std::string, std::optional<GroupShape>> formats;
  const auto add = [&](const ExpectedWeight& weight) {
    if (weight.expert_idx >= 1) return;
    const int64_t cols = weight.shape.size() == 2 ? weight.shape[1] : 0;
    formats[weight.name] = DefaultFormat(weight.role, cols, shape);
  };
  ForEachWeight(*config, add);
  ForEachMtpWeight(*config, add);
  return formats;
}

TEST(DefaultFormat, WhatDecidesOrIsNoPlainProductStaysWide) {
  const auto formats = FormatsOfV32({QuantFormat::kInt4Group, 64, true});
  for (const char* name :
       {"model.embed_tokens.weight", "model.norm.weight", "model.layers.5.mlp.gate.weight",
        "model.layers.5.self_attn.kv_b_proj.weight", "model.layers.5.input_layernorm.weight",
        "model.layers.5.self_attn.indexer.weights_proj.weight",
        "model.layers.61.embed_tokens.weight"}) {
    EXPECT_FALSE(formats.at(name).has_value()) << name;
  }
}

TEST(DefaultFormat, HeadsHaveEightBits) {
  const auto four = FormatsOfV32({QuantFormat::kInt4Group, 64, true});
  const GroupShape head = {QuantFormat::kInt8Group, 32, false};
  EXPECT_EQ(four.at("lm_head.weight"), head);
  EXPECT_EQ(four.at("model.layers.61.shared_head.head.weight"), head);
  const GroupShape eight = {QuantFormat::kInt8Group, 128, false};
  EXPECT_EQ(FormatsOfV32(eight).at("lm_head.weight"), eight);
}

TEST(DefaultFormat, DenseLayersHaveEightBitsAndAttentionFineGroups) {
  const auto formats = FormatsOfV32({QuantFormat::kInt4Group, 128, false});
  for (const char* name :
       {"model.layers.0.mlp.gate_proj.weight", "model.layers.2.mlp.up_proj.weight",
        "model.layers.0.mlp.down_proj.weight"}) {
    EXPECT_EQ(formats.at(name), (GroupShape{QuantFormat::kInt8Group, 128, false})) << name;
  }
  for (const char* name :
       {"model.layers.5.self_attn.q_a_proj.weight", "model.layers.5.self_attn.indexer.wk.weight",
        "model.layers.0.self_attn.kv_a_proj_with_mqa.weight",
        "model.layers.61.self_attn.o_proj.weight"}) {
    EXPECT_EQ(formats.at(name), (GroupShape{QuantFormat::kInt4Group, 32, false})) << name;
  }
}

TEST(DefaultFormat, AllOtherMatricesHaveTheShapeThatWasAskedFor) {
  const GroupShape shape = {QuantFormat::kInt4Group, 64, true};
  const auto formats = FormatsOfV32(shape);
  for (const char* name :
       {"model.layers.61.mlp.experts.0.up_proj.weight", "model.layers.61.eh_proj.weight",
        "model.layers.5.mlp.shared_experts.gate_proj.weight",
        "model.layers.5.mlp.experts.0.down_proj.weight"}) {
    EXPECT_EQ(formats.at(name), shape) << name;
  }
  const GroupShape eight = {QuantFormat::kInt8Group, 64, false};
  EXPECT_EQ(FormatsOfV32(eight).at("model.layers.0.mlp.gate_proj.weight"), eight);
}

TEST(DefaultFormat, AWidthThatNoGroupFillsStaysWide) {
  EXPECT_FALSE(
      DefaultFormat(WeightRole::kUp, 48, {QuantFormat::kInt4Group, 32, false}).has_value());
  EXPECT_TRUE(
      DefaultFormat(WeightRole::kUp, 10944, {QuantFormat::kInt4Group, 128, false}).has_value());
}

}  // namespace
}  // namespace hadal
