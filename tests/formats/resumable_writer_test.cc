#include "formats/resumable_writer.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "formats/checkpoint.h"
#include "formats/checksum_file.h"
#include "sys/mapped_file.h"
#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

using testing::HasSubstr;

const std::vector<SafetensorsSpec> kSpecs = {
    {"c", DType::kU8, {100}}, {"a", DType::kU8, {64}}, {"b", DType::kU8, {300}}};

std::vector<std::byte> Bytes(size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

Result<ResumableWriter> Open(const TempDir& dir, const std::string& fingerprint = "x") {
  return ResumableWriter::Open(dir.path(), kSpecs, fingerprint, 170);
}

// Flips a byte of the second tensor of a file whose values are all `value`.
void Damage(const std::string& path, char value) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(file)), {});
  const size_t at = content.find(std::string(20, value));
  ASSERT_NE(at, std::string::npos);
  file.clear();
  file.seekp(static_cast<std::streamoff>(at + 3));
  file.put(static_cast<char>(value + 1));
}

TEST(ResumableWriter, WritesAFolderThatOpens) {
  const TempDir dir;
  dir.Write("config.json", "{}");
  Result<ResumableWriter> writer = Open(dir);
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  EXPECT_TRUE(HasJournal(dir.path()));
  EXPECT_EQ(writer->num_shards(), 2);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(writer->Put(i, Bytes(static_cast<size_t>(writer->num_bytes(i)), i + 1)).ok());
  }
  EXPECT_EQ(writer->bytes(2)[299], std::byte{3});
  EXPECT_FALSE(Checkpoint::Open(dir.path()).ok());  // nothing has its name yet
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_FALSE(HasJournal(dir.path()));
  const auto checkpoint = Checkpoint::Open(dir.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ((*checkpoint)->Find("a")->bytes[63], std::byte{2});
  const Result<std::string> sums = ReadFile(dir.File(kChecksumFile), 1 << 20);
  EXPECT_EQ((*ParseJson(*sums, "sums"))["tensors"].size(), 3u);
}

TEST(ResumableWriter, AFinishedFolderCanBeVerified) {
  const TempDir dir;
  dir.Write("config.json", "{}");
  Result<ResumableWriter> writer = Open(dir);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(writer->Put(i, Bytes(static_cast<size_t>(writer->num_bytes(i)), i + 50)).ok());
  }
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_TRUE(VerifyChecksums(**Checkpoint::Open(dir.path())).ok());
  Damage(dir.File("model-00002-of-00002.safetensors"), 52);
  EXPECT_THAT(VerifyChecksums(**Checkpoint::Open(dir.path())).message(),
              HasSubstr("tensor \"b\": checksum: expected"));
  dir.Write(kChecksumFile, R"({"algorithm": "md5", "tensors": {}})");
  EXPECT_THAT(VerifyChecksums(**Checkpoint::Open(dir.path())).message(), HasSubstr("hadal-64"));
  dir.Write(kChecksumFile, R"({"algorithm": "hadal-64", "tensors": {"z": "0"}})");
  EXPECT_THAT(VerifyChecksums(**Checkpoint::Open(dir.path())).message(),
              HasSubstr("found no such tensor"));
  std::filesystem::remove(dir.File(kChecksumFile));
  EXPECT_TRUE(VerifyChecksums(**Checkpoint::Open(dir.path())).ok());
}

TEST(ResumableWriter, GoesOnWhereAnEarlierRunEnded) {
  const TempDir dir;
  {
    Result<ResumableWriter> writer = Open(dir);
    ASSERT_TRUE(writer->Put(1, Bytes(64, 7)).ok());
    ASSERT_TRUE(writer->Put(2, Bytes(300, 8)).ok());
  }
  // A line that the end of the process cut off does not count.
  std::ofstream(dir.File("quantize.journal"), std::ios::app) << "{\"tensor\": \"c\", \"chec";
  Result<ResumableWriter> writer = Open(dir);
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  EXPECT_EQ(writer->num_done(), 2);
  EXPECT_FALSE(writer->is_done(0));
  EXPECT_EQ(writer->bytes(1)[0], std::byte{7});
  EXPECT_THAT(writer->Finish().message(), HasSubstr("\"c\": expected to be written"));
  ASSERT_TRUE(writer->Put(0, Bytes(100, 9)).ok());
  EXPECT_TRUE(writer->Finish().ok());
}

TEST(ResumableWriter, WhatWasDamagedInBetweenIsWrittenAgain) {
  const TempDir dir;
  {
    Result<ResumableWriter> writer = Open(dir);
    ASSERT_TRUE(writer->Put(1, Bytes(64, 7)).ok());
    ASSERT_TRUE(writer->Put(2, Bytes(300, 8)).ok());
  }
  Damage(dir.File("model-00001-of-00002.safetensors.partial"), 7);
  Result<ResumableWriter> writer = Open(dir);
  EXPECT_FALSE(writer->is_done(1));
  EXPECT_TRUE(writer->is_done(2));
}

TEST(ResumableWriter, WhatIsDamagedWhileItIsWrittenIsFoundAtTheEnd) {
  const TempDir dir;
  Result<ResumableWriter> writer = Open(dir);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(writer->Put(i, Bytes(static_cast<size_t>(writer->num_bytes(i)), i + 50)).ok());
  }
  Damage(dir.File("model-00002-of-00002.safetensors.partial"), 52);
  const Status status = writer->Finish();
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("tensor \"b\": checksum"));
}

TEST(ResumableWriter, WorkThatWasBegunOtherwiseIsNotMixedIn) {
  const TempDir dir;
  ASSERT_TRUE(Open(dir, "one").ok());
  EXPECT_THAT(Open(dir, "two").status().message(), HasSubstr("--force"));
  ASSERT_TRUE(RemoveJournal(dir.path()).ok());
  EXPECT_TRUE(Open(dir, "two").ok());
  EXPECT_TRUE(RemoveJournal(dir.path()).ok());
  EXPECT_TRUE(RemoveJournal(dir.path()).ok());  // none is fine
}

TEST(ResumableWriter, TwoAtATimeAreRefused) {
  const TempDir dir;
  const Result<ResumableWriter> first = Open(dir);
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(Open(dir).status().message(), HasSubstr("another process"));
}

TEST(ResumableWriter, GoesOnAfterAnEndBetweenTheNamesOfTwoFiles) {
  const TempDir dir;
  dir.Write("config.json", "{}");
  {
    Result<ResumableWriter> writer = Open(dir);
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(writer->Put(i, Bytes(static_cast<size_t>(writer->num_bytes(i)), i)).ok());
    }
  }
  const std::string name = dir.File("model-00001-of-00002.safetensors");
  std::filesystem::rename(name + ".partial", name);
  Result<ResumableWriter> writer = Open(dir);
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  EXPECT_EQ(writer->num_done(), 3);
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_TRUE(Checkpoint::Open(dir.path()).ok());
}

}  // namespace
}  // namespace hadal
