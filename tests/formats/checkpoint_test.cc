#include "formats/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// What a refusal says; empty when the checkpoint opens.
std::string Refusal(const std::string& path) { return Checkpoint::Open(path).status().message(); }

std::vector<std::string> Names(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const TensorInfo& tensor : checkpoint.tensors()) names.push_back(tensor.name);
  return names;
}

// C122 and C126: what container_files.json says of each file.
TEST(Checkpoint, CraftedSafetensorsHeadersAreRefusedAndSoundOnesOpen) {
  const Json list = ReadGoldenJson("formats/container_files.json");
  int checked = 0;
  for (const Json& item : list["safetensors"]) {
    const std::string path = GoldenPath("formats/safetensors/" + item["file"].get<std::string>());
    SCOPED_TRACE(path);
    const std::string message = Refusal(path);
    if (item["expect"] == "open") {
      EXPECT_EQ(message, "") << item["why"];
    } else {
      EXPECT_THAT(message, AllOf(HasSubstr(path), Not(HasSubstr("\n")))) << item["why"];
    }
    ++checked;
  }
  EXPECT_EQ(checked, 20);
}

// C125: what container_files.json says of each folder.
TEST(Checkpoint, AMissingOrShortShardIsRefused) {
  const Json list = ReadGoldenJson("formats/container_files.json");
  int checked = 0;
  for (const Json& item : list["shards"]) {
    const std::string path = GoldenPath("formats/shards/" + item["dir"].get<std::string>());
    SCOPED_TRACE(path);
    const std::string message = Refusal(path);
    if (item["expect"] == "open") {
      EXPECT_EQ(message, "") << item["why"];
    } else {
      EXPECT_THAT(message, AllOf(HasSubstr(path), Not(HasSubstr("\n")))) << item["why"];
    }
    ++checked;
  }
  EXPECT_EQ(checked, 4);
}

TEST(Checkpoint, FindsTensorsOfAllShards) {
  const auto checkpoint = Checkpoint::Open(GoldenPath("formats/shards/ok"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_THAT(Names(**checkpoint), ElementsAre("a", "b"));
  EXPECT_EQ((*checkpoint)->files().size(), 2u);
  EXPECT_EQ((*checkpoint)->Find("a")->file_idx, 0);
  EXPECT_EQ((*checkpoint)->Find("b")->file_idx, 1);
  EXPECT_EQ((*checkpoint)->Find("c"), nullptr);
  EXPECT_TRUE((*checkpoint)->config().is_null());
}

}  // namespace
}  // namespace hadal
