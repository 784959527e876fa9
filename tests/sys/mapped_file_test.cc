#include "sys/mapped_file.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

class MappedFileTest : public ::testing::TestWithParam<FileAccess> {
 protected:
  static std::string Content(const MappedFile& file) {
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
  }
  TempDir dir_;
};

TEST_P(MappedFileTest, GivesTheBytesOfTheFile) {
  std::string content(10'000, 'x');
  content[0] = '\0';
  content.back() = 'y';
  const std::string path = dir_.Write("some", content);
  const Result<MappedFile> file = MappedFile::Open(path, GetParam());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file.value().size(), 10'000);
  EXPECT_EQ(file.value().path(), path);
  EXPECT_EQ(Content(file.value()), content);
}

TEST_P(MappedFileTest, OpensAnEmptyFile) {
  const Result<MappedFile> file = MappedFile::Open(dir_.Write("empty", ""), GetParam());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file.value().size(), 0);
  EXPECT_TRUE(file.value().bytes().empty());
}

TEST_P(MappedFileTest, KeepsItsBytesWhenItMoves) {
  Result<MappedFile> first = MappedFile::Open(dir_.Write("a", "one"), GetParam());
  Result<MappedFile> second = MappedFile::Open(dir_.Write("b", "two"), GetParam());
  ASSERT_TRUE(first.ok() && second.ok());
  MappedFile moved = std::move(first.value());
  EXPECT_EQ(Content(moved), "one");
  moved = std::move(second.value());
  EXPECT_EQ(Content(moved), "two");
}

TEST_P(MappedFileTest, NamesAMissingFile) {
  const Result<MappedFile> file = MappedFile::Open(dir_.path() + "/nowhere", GetParam());
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), StatusCode::kNotFound);
  EXPECT_NE(file.status().message().find("/nowhere: "), std::string::npos);
}

TEST_P(MappedFileTest, RefusesADirectory) {
  const Result<MappedFile> file = MappedFile::Open(dir_.path(), GetParam());
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(file.status().message().find(dir_.path()), std::string::npos);
}

TEST_P(MappedFileTest, RefusesAPipeInsteadOfWaitingForIt) {
  const std::string path = dir_.path() + "/pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const Result<MappedFile> file = MappedFile::Open(path, GetParam());
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Ways, MappedFileTest,
                         ::testing::Values(FileAccess::kMap, FileAccess::kRead),
                         [](const auto& param_info) {
                           return param_info.param == FileAccess::kMap ? "Map" : "Read";
                         });

TEST(ReadFile, RefusesAFileThatIsTooLarge) {
  const TempDir dir;
  const std::string path = dir.Write("file", "12345");
  const Result<std::string> whole = ReadFile(path, 5);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole.value(), "12345");
  const Result<std::string> refused = ReadFile(path, 4);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().message(), path + ": size: expected at most 4 bytes, found 5");
}

}  // namespace
}  // namespace hadal
