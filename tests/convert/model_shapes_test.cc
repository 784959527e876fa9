#include "convert/model_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "model/model_config.h"
#include "model/parameter_count.h"
#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

using testing::HasSubstr;

ParameterCount CountOf(const std::string& shape) {
  const Result<Json> json = ReadModelShape(shape);
  EXPECT_TRUE(json.ok()) << json.status().message();
  const Result<ModelConfig> config = ModelConfig::Parse(*json, shape);
  EXPECT_TRUE(config.ok()) << config.status().message();
  return CountParameters(*config);
}

// Specification, 1.2: exact counts.
TEST(ModelShapes, HaveAsManyParametersAsThePublishedModels) {
  EXPECT_EQ(CountOf("v2-lite").total, 15'706'484'224);
  EXPECT_EQ(CountOf("v2-lite").active, 2'661'150'208);
  EXPECT_EQ(CountOf("v2").total, 235'741'434'880);
  EXPECT_EQ(CountOf("v3").total, 671'026'419'200);
  EXPECT_EQ(CountOf("v3").mtp, 11'610'068'224);
  EXPECT_EQ(CountOf("v3.2").total, 671'026'419'200 + 61 * int64_t{13'959'424});
}

TEST(ModelShapes, AllNamesAreShapes) {
  EXPECT_EQ(ModelShapeNames().size(), 4u);
  for (const std::string& name : ModelShapeNames()) EXPECT_GT(CountOf(name).total, 0) << name;
}

TEST(ModelShapes, AnythingElseIsAFile) {
  const TempDir dir;
  const std::string path = dir.Write("config.json", R"({"hidden_size": 7})");
  EXPECT_EQ((*ReadModelShape(path))["hidden_size"], 7);
  EXPECT_THAT(ReadModelShape(dir.Write("list.json", "[1]")).status().message(),
              HasSubstr("expected a JSON object, found array"));
  const Status none = ReadModelShape("v5").status();
  EXPECT_EQ(none.code(), StatusCode::kNotFound);
  EXPECT_THAT(none.message(), HasSubstr("v2-lite, v2, v3, v3.2"));
}

}  // namespace
}  // namespace hadal
