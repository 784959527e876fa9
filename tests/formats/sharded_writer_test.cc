#include "formats/sharded_writer.h"

#include <filesystem>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/checkpoint.h"
#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

using testing::HasSubstr;

std::vector<std::byte> Bytes(size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

std::vector<SafetensorsSpec> ThreeTensors() {
  return {{"c", DType::kU8, {100}}, {"a", DType::kU8, {64}}, {"b", DType::kU8, {300}}};
}

TEST(ShardedWriter, PutsTensorsIntoShardsInTheirOrder) {
  const TempDir dir;
  dir.Write("config.json", "{}");
  Result<ShardedWriter> writer = ShardedWriter::Create(dir.path(), ThreeTensors(), 170);
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(writer->num_shards(), 2);
  EXPECT_EQ(writer->total_bytes(), 464);
  ASSERT_TRUE(writer->Write(0, 0, Bytes(100, 1)).ok());
  ASSERT_TRUE(writer->Write(1, 32, Bytes(32, 3)).ok());
  EXPECT_FALSE(std::filesystem::exists(dir.File("model-00001-of-00002.safetensors")));
  ASSERT_TRUE(writer->Write(1, 0, Bytes(32, 2)).ok());
  EXPECT_TRUE(std::filesystem::exists(dir.File("model-00001-of-00002.safetensors")));
  const Status early = writer->Finish();
  EXPECT_THAT(early.message(), HasSubstr("model-00002-of-00002.safetensors: expected 300 bytes"));
  ASSERT_TRUE(writer->Write(2, 0, Bytes(300, 4)).ok());
  ASSERT_TRUE(writer->Finish().ok());

  const auto checkpoint = Checkpoint::Open(dir.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  ASSERT_EQ((*checkpoint)->tensors().size(), 3u);
  EXPECT_EQ((*checkpoint)->Find("a")->bytes[0], std::byte{2});
  EXPECT_EQ((*checkpoint)->Find("a")->bytes[63], std::byte{3});
  EXPECT_EQ((*checkpoint)->Find("b")->bytes[299], std::byte{4});
  EXPECT_EQ((*checkpoint)->files().size(), 2u);
}

TEST(ShardedWriter, OneFileNeedsNoIndex) {
  const TempDir dir;
  Result<ShardedWriter> writer = ShardedWriter::Create(dir.path(), {{"a", DType::kU8, {3}}});
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Write(0, 0, Bytes(3, 1)).ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_TRUE(std::filesystem::exists(dir.File("model.safetensors")));
  EXPECT_FALSE(std::filesystem::exists(dir.File("model.safetensors.index.json")));
}

TEST(ShardedWriter, RefusesSizesThatAreNone) {
  const TempDir dir;
  const Status status = ShardedWriter::Create(dir.path(), {{"a", DType::kF32, {-1}}}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  const int64_t huge = int64_t{1} << 61;
  EXPECT_EQ(
      ShardedWriter::Create(dir.path(), {{"a", DType::kU8, {huge - 1}}, {"b", DType::kF32, {huge}}})
          .status()
          .code(),
      StatusCode::kInvalidArgument);
}

TEST(ShardedWriter, SaysWhereItCannotWrite) {
  Result<ShardedWriter> writer = ShardedWriter::Create("/no/such/folder", ThreeTensors());
  ASSERT_TRUE(writer.ok());
  EXPECT_THAT(writer->Write(0, 0, Bytes(100, 1)).message(), HasSubstr("/no/such/folder/model"));
}

TEST(WriteWholeFile, ReplacesWhatWasThere) {
  const TempDir dir;
  const std::string path = dir.Write("a.json", "old and longer");
  ASSERT_TRUE(WriteWholeFile(path, "new").ok());
  EXPECT_EQ(std::filesystem::file_size(path), 3u);
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  EXPECT_THAT(WriteWholeFile("/no/such/folder/x", "new").message(), HasSubstr("/no/such/folder/x"));
}

}  // namespace
}  // namespace hadal
