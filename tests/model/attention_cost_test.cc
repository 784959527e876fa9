#include "model/attention_cost.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/files.h"
#include "tests/support/model_configs.h"

namespace hadal {
namespace {

AttentionCost CostOf(const Json& config) {
  const Result<ModelConfig> parsed = ModelConfig::Parse(config, "config.json");
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  return CountAttentionCost(*parsed);
}

TEST(AttentionCost, IsThatOfTheSpecification) {
  const Json expected = ReadGoldenJson("spec/model.json").at("attention_flops")["expected"];
  for (const auto& [name, config] :
       {std::pair("V2-Lite", V2LiteConfig()), std::pair("V2-236B", V2Config()),
        std::pair("V3-671B", V3Config())}) {
    SCOPED_TRACE(name);
    const AttentionCost cost = CostOf(config);
    const Json& numbers = expected.at(name);
    EXPECT_EQ(cost.expanded_flops_per_pair, numbers["naive_per_query_key_pair"].get<int64_t>());
    EXPECT_EQ(cost.absorbed_flops_per_pair, numbers["absorbed_per_query_key_pair"].get<int64_t>());
    EXPECT_EQ(cost.fold_flops_per_token, numbers["decompress_per_cached_token"].get<int64_t>());
    EXPECT_EQ(cost.fold_flops_per_token, numbers["absorb_per_query_token"].get<int64_t>());
    EXPECT_DOUBLE_EQ(static_cast<double>(cost.absorbed_flops_per_pair) /
                         static_cast<double>(cost.expanded_flops_per_pair),
                     numbers["pair_ratio"].get<double>());
    EXPECT_NEAR(cost.break_even_tokens(), expected["break_even_T_for_128_heads"].get<double>(),
                5e-4);
  }
}

TEST(AttentionCost, UnfoldingNeverPaysWhereLatentsAreNarrow) {
  EXPECT_TRUE(std::isinf(CostOf(With(V2LiteConfig(), "kv_lora_rank", 32)).break_even_tokens()));
}

}  // namespace
}  // namespace hadal
