#include "convert/recipe.h"

#include <map>

#include <gtest/gtest.h>

#include "base/json.h"
#include "convert/model_shapes.h"
#include "model/model_config.h"

namespace hadal {
namespace {

std::map<std::string, std::optional<GroupShape>> FormatsOf(const std::string& shape_name,
                                                           const GroupShape& shape) {
  const Result<Json> json = ReadModelShape(shape_name);
  const Result<ModelConfig> config = ModelConfig::Parse(*json, shape_name);
  std::map<std::string, std::optional<GroupShape>> formats;
  const auto add = [&](const ExpectedWeight& weight) {
    if (weight.expert_idx < 1) formats[weight.name] = DefaultFormat(weight, shape);
  };
  ForEachWeight(*config, add);
  ForEachMtpWeight(*config, add);
  return formats;
}

TEST(DefaultFormat, WhatDecidesOrIsNoPlainProductStaysWide) {
  const auto formats = FormatsOf("v3.2", {QuantFormat::kInt4Group, 64, true});
  for (const char* name :
       {"model.embed_tokens.weight", "model.norm.weight", "model.layers.5.mlp.gate.weight",
        "model.layers.5.self_attn.kv_b_proj.weight", "model.layers.5.input_layernorm.weight",
        "model.layers.5.self_attn.indexer.weights_proj.weight",
        "model.layers.61.embed_tokens.weight"}) {
    EXPECT_FALSE(formats.at(name).has_value()) << name;
  }
}

TEST(DefaultFormat, HeadsHaveEightBits) {
  const auto four = FormatsOf("v3.2", {QuantFormat::kInt4Group, 64, true});
  const GroupShape head = {QuantFormat::kInt8Group, 32, false};
  EXPECT_EQ(four.at("lm_head.weight"), head);
  EXPECT_EQ(four.at("model.layers.61.shared_head.head.weight"), head);
  const GroupShape eight = {QuantFormat::kInt8Group, 128, false};
  EXPECT_EQ(FormatsOf("v3.2", eight).at("lm_head.weight"), eight);
}

TEST(DefaultFormat, AllOtherMatricesAreGrouped) {
  const GroupShape shape = {QuantFormat::kInt4Group, 64, true};
  const auto formats = FormatsOf("v3.2", shape);
  for (const char* name :
       {"model.layers.0.mlp.down_proj.weight", "model.layers.61.mlp.experts.0.up_proj.weight",
        "model.layers.5.mlp.shared_experts.gate_proj.weight", "model.layers.61.eh_proj.weight",
        "model.layers.5.self_attn.q_a_proj.weight", "model.layers.5.self_attn.indexer.wk.weight",
        "model.layers.5.self_attn.kv_a_proj_with_mqa.weight"}) {
    EXPECT_EQ(formats.at(name), shape) << name;
  }
}

TEST(DefaultFormat, AWidthThatNoGroupFillsStaysWide) {
  ExpectedWeight weight;
  weight.role = WeightRole::kUp;
  weight.shape = {64, 48};
  EXPECT_FALSE(DefaultFormat(weight, {QuantFormat::kInt4Group, 32, false}).has_value());
}

}  // namespace
}  // namespace hadal
