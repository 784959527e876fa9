#include "hub/file_digest.h"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

std::string Digest(HashKind kind, std::string_view text) {
  FileDigest digest(kind, static_cast<int64_t>(text.size()));
  for (const char& c : text) digest.Add(std::as_bytes(std::span(&c, 1)));
  return digest.Finish();
}

// `printf hello | sha256sum`, `printf hello | git hash-object --stdin`.
TEST(FileDigest, IsWhatTheUsualProgramsPrint) {
  EXPECT_EQ(Digest(HashKind::kSha256, "hello"),
            "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
  EXPECT_EQ(Digest(HashKind::kGitSha1, "hello"), "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0");
  EXPECT_EQ(Digest(HashKind::kGitSha1, ""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
}

TEST(FileDigest, OfAFileIsThatOfItsContent) {
  const TempDir dir;
  const std::string text(3'000'000, 'x');
  for (const HashKind kind : {HashKind::kSha256, HashKind::kGitSha1}) {
    const auto hash = HashOfFile(dir.Write("file", text), kind);
    ASSERT_TRUE(hash.ok()) << hash.status().message();
    EXPECT_EQ(*hash, Digest(kind, text));
  }
  EXPECT_EQ(HashOfFile(dir.File("none"), HashKind::kSha256).status().code(), StatusCode::kIo);
}

}  // namespace
}  // namespace hadal
