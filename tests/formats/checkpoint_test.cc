#include "formats/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/safetensors_writer.h"
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

// C125: the reader alone may open these, a model never.
TEST(Checkpoint, AFileWithoutConfigIsNoModel) {
  const auto checkpoint = Checkpoint::Open(GoldenPath("formats/safetensors/ok_plain.safetensors"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_TRUE((*checkpoint)->config().is_null());
  EXPECT_EQ((*checkpoint)->Find("b")->shape, std::vector<int64_t>{3});
}

TEST(Checkpoint, GgufFilesWithoutAModelAreRefusedByName) {
  EXPECT_THAT(Refusal(GoldenPath("formats/gguf/ok_one_tensor.gguf")),
              HasSubstr("deepseek2.embedding_length: expected an integer, found nothing"));
  const TempDir dir;
  dir.Write("model-Q4_K_M.gguf", "GGUF");
  EXPECT_THAT(Refusal(dir.path()), HasSubstr("model-Q4_K_M.gguf: GGUF version: expected 4 bytes"));
}

TEST(Checkpoint, NothingAtThePathIsSaid) {
  EXPECT_THAT(Refusal("/no/such/folder"),
              HasSubstr("/no/such/folder: expected a model folder or file, found nothing"));
}

// Shards that hold one float each, under the given names.
struct Shards {
  explicit Shards(const std::string& weight_map) {
    for (const char* name : {"a", "b"}) {
      const std::vector<float> one = {1.0f};
      const std::string file = dir.File(std::string(name) + ".safetensors");
      const Status written =
          WriteSafetensors(file, {{{name, DType::kF32, {1}}, std::as_bytes(std::span(one))},
                                  {{"both", DType::kF32, {1}}, std::as_bytes(std::span(one))}});
      EXPECT_TRUE(written.ok()) << written.message();
    }
    dir.Write("model.safetensors.index.json", "{\"weight_map\": " + weight_map + "}");
  }
  TempDir dir;
};

TEST(Checkpoint, ATensorThatIsNotInItsShardIsNamed) {
  const Shards shards(R"({"a": "a.safetensors", "b": "a.safetensors", "c": "b.safetensors"})");
  EXPECT_THAT(Refusal(shards.dir.path()),
              HasSubstr("weight_map: expected 3 tensors in 2 shards, found 1; missing: "
                        "\"b\" in a.safetensors, \"c\" in b.safetensors"));
}

TEST(Checkpoint, TheIndexDecidesBetweenTwoTensorsOfOneName) {
  const Shards shards(R"({"a": "a.safetensors", "both": "b.safetensors"})");
  const auto checkpoint = Checkpoint::Open(shards.dir.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_THAT(Names(**checkpoint), ElementsAre("a", "both"));
  EXPECT_EQ((*checkpoint)->Find("both")->file_idx, 1);
}

TEST(Checkpoint, TheIndexItselfOpensItsFolder) {
  const auto checkpoint =
      Checkpoint::Open(GoldenPath("formats/shards/ok/model.safetensors.index.json"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_THAT(Names(**checkpoint), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace hadal
