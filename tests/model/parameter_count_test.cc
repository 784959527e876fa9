#include "model/parameter_count.h"

#include <gtest/gtest.h>

#include "tests/support/files.h"
#include "tests/support/model_configs.h"

namespace hadal {
namespace {

void ExpectCounts(const char* example, const Json& config) {
  SCOPED_TRACE(example);
  const Json all = ReadGoldenJson("spec/number_formats.json")["parameter_counts"]["expected"];
  const Json& expected = all[example];
  const Result<ModelConfig> parsed = ModelConfig::Parse(config, "config.json");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const ParameterCount count = CountParameters(*parsed);
  EXPECT_EQ(count.total, expected["total"].get<int64_t>());
  EXPECT_EQ(count.active, expected["active_with_embedding_and_head"].get<int64_t>());
  EXPECT_EQ(count.active_without_embedding(), expected["active_without_embedding"].get<int64_t>());
  EXPECT_EQ(count.embedding, expected["embedding"].get<int64_t>());
  int64_t parts = 0;
  for (const int64_t part : count.by_part) parts += part;
  EXPECT_EQ(parts, count.total);
  if (!expected.contains("mtp_unique")) return;
  EXPECT_EQ(count.mtp, expected["mtp_unique"].get<int64_t>());
  EXPECT_EQ(count.mtp_active, expected["mtp_active_unique"].get<int64_t>());
}

TEST(ParameterCount, IsThatOfTheReleasedModels) {
  ExpectCounts("V2-Lite", V2LiteConfig());
  ExpectCounts("V2-236B", V2Config());
  ExpectCounts("V3-671B", V3Config());
  ExpectCounts("V3.2 (adds indexer to each of 61 layers)", V32Config());
}

}  // namespace
}  // namespace hadal
