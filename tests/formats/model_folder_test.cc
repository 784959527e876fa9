#include "formats/model_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

using testing::HasSubstr;

TEST(ModelFolder, ReadsBothConfigsFromTheFolderOrAFileInIt) {
  const TempDir dir;
  dir.Write("config.json", R"({"model_type": "deepseek_v3"})");
  dir.Write("generation_config.json", R"({"temperature": 0.6})");
  const std::string file = dir.Write("model.safetensors", "");
  for (const std::string& path : {dir.path(), file}) {
    const auto folder = ReadModelFolder(path);
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    EXPECT_EQ(folder->folder, dir.path());
    EXPECT_EQ(folder->config["model_type"], "deepseek_v3");
    EXPECT_EQ(folder->generation_config["temperature"], 0.6);
  }
}

TEST(ModelFolder, AbsentConfigsAreNull) {
  const TempDir dir;
  const auto folder = ReadModelFolder(dir.path());
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  EXPECT_TRUE(folder->config.is_null());
  EXPECT_TRUE(folder->generation_config.is_null());
}

TEST(ModelFolder, WhatIsNotAJsonObjectIsRefusedByName) {
  const TempDir dir;
  const auto refusal = [&] { return ReadModelFolder(dir.path()).status().message(); };
  dir.Write("config.json", "{");
  EXPECT_THAT(refusal(), HasSubstr("/config.json: expected JSON"));
  dir.Write("config.json", "[1]");
  EXPECT_THAT(refusal(), HasSubstr("/config.json: expected a JSON object, found array"));
  dir.Write("config.json", std::string(200, '[') + std::string(200, ']'));
  EXPECT_THAT(refusal(), HasSubstr("nesting"));
  dir.Write("config.json", "{\"a\": \"\xFF\"}");
  EXPECT_THAT(refusal(), HasSubstr("/config.json: expected JSON"));
  dir.Write("config.json", "{}");
  dir.Write("generation_config.json", "7");
  EXPECT_THAT(refusal(), HasSubstr("/generation_config.json: expected a JSON object"));
}

TEST(ModelFolder, NothingAtThePathIsNotFound) {
  const auto folder = ReadModelFolder("/no/such/model");
  EXPECT_EQ(folder.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(folder.status().message(), HasSubstr("/no/such/model: expected a model folder"));
}

}  // namespace
}  // namespace hadal
