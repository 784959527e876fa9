#include "convert/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace hadal {
namespace {

using testing::HasSubstr;
using Kind = WeightTarget::Kind;

constexpr GroupShape kDefaults = {QuantFormat::kInt4Group, 64, true};

ExpectedWeight Weight(WeightRole role, std::string name, std::vector<int64_t> shape = {64, 64}) {
  ExpectedWeight weight;
  weight.role = role;
  weight.name = std::move(name);
  weight.shape = std::move(shape);
  return weight;
}

TEST(MatchesPattern, StarsStandForAnything) {
  EXPECT_TRUE(MatchesPattern("a.b", "a.b"));
  EXPECT_FALSE(MatchesPattern("a.b", "a.bc"));
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_TRUE(MatchesPattern("*.experts.*.up*", "model.layers.3.mlp.experts.11.up_proj.weight"));
  EXPECT_FALSE(
      MatchesPattern("*.experts.*.up*", "model.layers.3.mlp.shared_experts.up_proj.weight"));
  EXPECT_TRUE(MatchesPattern("*aab", "aaaaab"));
  EXPECT_TRUE(MatchesPattern("**b**", "abc"));
  EXPECT_FALSE(MatchesPattern("", "a"));
}

TEST(MatchesPattern, ManyStarsCostLittle) {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "*a";
  EXPECT_FALSE(MatchesPattern(pattern + "b", std::string(5000, 'a')));
}

TEST(Recipe, TheFirstRuleThatMatchesDecides) {
  const Result<Recipe> recipe = Recipe::Parse(
      R"({"group_size": 32, "zero_points": false, "rules": [
          {"match": "*.o_proj.weight", "format": "int8", "group_size": 128},
          {"match": "*.layers.0.*", "format": "keep"},
          {"match": "*.kv_b_proj.weight", "format": "fp8"},
          {"match": "*", "format": "int4", "zero_points": true}]})",
      kDefaults, "f");
  ASSERT_TRUE(recipe.ok()) << recipe.status().message();
  EXPECT_EQ(recipe->shape(), (GroupShape{QuantFormat::kInt4Group, 32, false}));
  const WeightTarget out =
      recipe->TargetOf(Weight(WeightRole::kOut, "model.layers.0.self_attn.o_proj.weight"));
  EXPECT_EQ(out, (WeightTarget{Kind::kGrouped, {QuantFormat::kInt8Group, 128, false}}));
  EXPECT_EQ(recipe->TargetOf(Weight(WeightRole::kUp, "model.layers.0.mlp.up_proj.weight")).kind,
            Kind::kAsIs);
  EXPECT_EQ(
      recipe->TargetOf(Weight(WeightRole::kKvB, "model.layers.1.self_attn.kv_b_proj.weight")).kind,
      Kind::kFp8);
  EXPECT_EQ(recipe->TargetOf(Weight(WeightRole::kUp, "model.layers.1.mlp.up_proj.weight")),
            (WeightTarget{Kind::kGrouped, {QuantFormat::kInt4Group, 32, true}}));
}

TEST(Recipe, WhatCannotBeGroupedStaysWhateverTheRules) {
  const Result<Recipe> recipe =
      Recipe::Parse(R"({"rules": [{"match": "*", "format": "int8"}]})", kDefaults, "f");
  ASSERT_TRUE(recipe.ok());
  for (const WeightRole role : {WeightRole::kKvB, WeightRole::kEmbedding, WeightRole::kRouter,
                                WeightRole::kIndexerWeights}) {
    EXPECT_EQ(recipe->TargetOf(Weight(role, "x")).kind, Kind::kAsIs);
  }
  EXPECT_EQ(recipe->TargetOf(Weight(WeightRole::kInputNorm, "x", {64})).kind, Kind::kAsIs);
  EXPECT_EQ(recipe->TargetOf(Weight(WeightRole::kUp, "x", {64, 48})).kind, Kind::kAsIs);
}

TEST(Recipe, WithoutRulesTheDefaultsHold) {
  const Recipe recipe(kDefaults);
  EXPECT_EQ(recipe.TargetOf(Weight(WeightRole::kExpertUp, "x")),
            (WeightTarget{Kind::kGrouped, kDefaults}));
  EXPECT_EQ(recipe.TargetOf(Weight(WeightRole::kHead, "x")).shape.format, QuantFormat::kInt8Group);
  EXPECT_EQ(recipe.TargetOf(Weight(WeightRole::kKvB, "x")).kind, Kind::kFp8);
  const Recipe eight(GroupShape{QuantFormat::kInt8Group, 64, false});
  EXPECT_EQ(eight.TargetOf(Weight(WeightRole::kKvB, "x")).kind, Kind::kAsIs);
}

TEST(Recipe, SaysItselfInJsonThatReadsBackTheSame) {
  constexpr const char* kText = R"({"format": "int8", "group_size": 128, "rules": [
      {"match": "a*", "format": "int4", "zero_points": true}, {"match": "b", "format": "fp8"},
      {"match": "c", "format": "keep"}]})";
  const Result<Recipe> recipe = Recipe::Parse(kText, kDefaults, "f");
  ASSERT_TRUE(recipe.ok()) << recipe.status().message();
  const std::string once = DumpJson(recipe->ToJson());
  const Result<Recipe> again = Recipe::Parse(once, {}, "g");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(DumpJson(again->ToJson()), once);
}

TEST(Recipe, FaultsNameThePlace) {
  const auto error = [](std::string_view text) {
    return Recipe::Parse(text, kDefaults, "r.json").status().message();
  };
  EXPECT_THAT(error("[]"), HasSubstr("r.json: expected a JSON object, found array"));
  EXPECT_THAT(error("{"), HasSubstr("r.json"));
  EXPECT_THAT(error(R"({"grup_size": 32})"), HasSubstr("\"grup_size\": expected one of format"));
  EXPECT_THAT(error(R"({"format": "int5"})"), HasSubstr("format: expected int4 or int8"));
  EXPECT_THAT(error(R"({"group_size": 48})"), HasSubstr("group_size: expected 32, 64 or 128"));
  EXPECT_THAT(error(R"({"format": "int8", "zero_points": true})"), HasSubstr("zero_points"));
  EXPECT_THAT(error(R"({"rules": {}})"), HasSubstr("rules: expected a list"));
  EXPECT_THAT(error(R"({"rules": [{"match": "*"}]})"), HasSubstr("r.json: rules[0]: format"));
  EXPECT_THAT(error(R"({"rules": [{"match": "*", "format": "keep"}, {"format": "keep"}]})"),
              HasSubstr("rules[1]: match"));
  EXPECT_THAT(error(R"({"rules": [{"match": "*", "format": "fp4"}]})"),
              HasSubstr("expected int4, int8, fp8 or keep"));
}

}  // namespace
}  // namespace hadal
