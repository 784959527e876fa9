#include "formats/weight_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hadal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string Refusal(const std::string& text) {
  return ParseWeightIndex(text, "index.json").status().message();
}

TEST(WeightIndex, ListsFilesOnceAndInOrder) {
  const auto index = ParseWeightIndex(
      R"({"metadata": {}, "weight_map": {"x": "b.safetensors", "y": "a.safetensors",
          "z": "b.safetensors"}})",
      "index.json");
  ASSERT_TRUE(index.ok()) << index.status().message();
  EXPECT_THAT(index->files, ElementsAre("a.safetensors", "b.safetensors"));
  EXPECT_EQ(index->file_of.at("x"), 1);
  EXPECT_EQ(index->file_of.at("y"), 0);
  EXPECT_EQ(index->file_of.at("z"), 1);
}

TEST(WeightIndex, FileNamesThatLeadElsewhereAreRefused) {
  for (const char* name : {"../m.safetensors", "/etc/passwd", "a/b.safetensors", "a\\\\b", "..",
                           ".", "", "a..b", "a\\u0000b", "a\\nb"}) {
    SCOPED_TRACE(name);
    EXPECT_THAT(Refusal(R"({"weight_map": {"x": ")" + std::string(name) + "\"}}"),
                AllOf(HasSubstr("index.json: weight_map: \"x\": expected a plain file name, found"),
                      Not(HasSubstr("\n"))));
  }
  EXPECT_THAT(Refusal(R"({"weight_map": {"x": 7}})"), HasSubstr("expected a plain file name"));
  EXPECT_THAT(Refusal(R"({"weight_map": {"x": ")" + std::string(300, 'a') + "\"}}"),
              HasSubstr("expected a plain file name"));
}

TEST(WeightIndex, BrokenIndexesAreRefused) {
  EXPECT_THAT(Refusal(""), HasSubstr("index.json: expected a JSON object"));
  EXPECT_THAT(Refusal("[]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(Refusal("{}"),
              HasSubstr("weight_map: expected an object of file names, found nothing"));
  EXPECT_THAT(Refusal(R"({"weight_map": []})"), HasSubstr("weight_map: expected an object"));
  EXPECT_THAT(Refusal(R"({"weight_map": {}})"), HasSubstr("expected at least one tensor"));
  EXPECT_THAT(Refusal(R"({"weight_map": {"x": "a", "x": "b"}})"),
              HasSubstr("weight_map: \"x\": expected once, found twice"));
  EXPECT_THAT(Refusal(R"({"weight_map": {"x": "a"}, "weight_map": {"x": "a"}})"),
              HasSubstr("weight_map: expected once, found twice"));
  EXPECT_THAT(Refusal(R"({"weight_map": {"x": "a")"), HasSubstr("expected a JSON object"));
}

}  // namespace
}  // namespace hadal
