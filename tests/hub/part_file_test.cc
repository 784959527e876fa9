#include "hub/part_file.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

const char* const kHelloHash = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

TEST(PartFile, ContinuesWhatAnEarlierOneLeft) {
  const TempDir dir;
  const std::string path = dir.File("part");
  {
    auto part = PartFile::Open(path, HashKind::kSha256, 5);
    ASSERT_TRUE(part.ok()) << part.status().message();
    ASSERT_TRUE(part->Append(Bytes("hel")).ok());
  }
  auto part = PartFile::Open(path, HashKind::kSha256, 5);
  ASSERT_TRUE(part.ok()) << part.status().message();
  EXPECT_EQ(part->num_bytes(), 3);
  ASSERT_TRUE(part->Append(Bytes("lo")).ok());
  EXPECT_EQ(part->FinishHash(), kHelloHash);
  ASSERT_TRUE(part->Publish(dir.File("done")).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(*HashOfFile(dir.File("done"), HashKind::kSha256), kHelloHash);
}

TEST(PartFile, DropsWhatIsLongerThanTheFile) {
  const TempDir dir;
  const auto part = PartFile::Open(dir.Write("part", "far too long"), HashKind::kSha256, 5);
  ASSERT_TRUE(part.ok()) << part.status().message();
  EXPECT_EQ(part->num_bytes(), 0);
  EXPECT_EQ(std::filesystem::file_size(dir.File("part")), 0u);
}

TEST(PartFile, StartsAgainFromNothing) {
  const TempDir dir;
  auto part = PartFile::Open(dir.Write("part", "xxxx"), HashKind::kSha256, 5);
  ASSERT_TRUE(part.ok()) << part.status().message();
  part->FinishHash();
  ASSERT_TRUE(part->StartAgain().ok());
  ASSERT_TRUE(part->Append(Bytes("hello")).ok());
  EXPECT_EQ(part->FinishHash(), kHelloHash);
}

TEST(PartFile, NeverWritesIntoAFileThatHasAnotherName) {
  const TempDir dir;
  const std::string model = dir.Write("model", "abc");
  std::filesystem::create_hard_link(model, dir.File("part"));
  auto part = PartFile::Open(dir.File("part"), HashKind::kSha256, 5);
  ASSERT_TRUE(part.ok()) << part.status().message();
  ASSERT_TRUE(part->Append(Bytes("hello")).ok());
  EXPECT_EQ(std::filesystem::file_size(model), 3u);
}

TEST(PartFile, NeverFollowsALink) {
  const TempDir dir;
  const std::string precious = dir.Write("precious", "abc");
  std::filesystem::create_symlink(precious, dir.File("part"));
  EXPECT_EQ(PartFile::Open(dir.File("part"), HashKind::kSha256, 5).status().code(),
            StatusCode::kIo);
  EXPECT_EQ(std::filesystem::file_size(precious), 3u);
}

}  // namespace
}  // namespace hadal
