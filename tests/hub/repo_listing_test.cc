#include "hub/repo_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hadal {
namespace {

using testing::HasSubstr;

const std::string kSha1(40, 'a'), kSha256(64, 'b');

std::string Entry(const std::string& path, const std::string& more) {
  return R"({"type": "file", "path": ")" + path + R"(", )" + more + "}";
}

std::string Fault(const std::string& list) {
  std::vector<RemoteFile> files;
  const Status status = AppendListing(list, "list", &files);
  EXPECT_FALSE(status.ok()) << list;
  return status.message();
}

TEST(RepoListing, LargeFilesHaveTheirOwnHashAndSize) {
  std::vector<RemoteFile> files;
  const std::string list =
      "[" + Entry("b", R"("size": 3, "oid": ")" + kSha1 + R"(")") + "," +
      R"({"type": "directory", "path": "c", "size": 0, "oid": "x"},)" +
      Entry("a", R"("size": 130, "oid": ")" + kSha1 + R"(", "lfs": {"oid": ")" + kSha256 +
                     R"(", "size": 5000000000})") +
      "]";
  ASSERT_TRUE(AppendListing(list, "list", &files).ok());
  ASSERT_TRUE(CheckListing("list", &files).ok());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].path, "a");
  EXPECT_EQ(files[0].size, 5'000'000'000);
  EXPECT_EQ(files[0].hash_kind, HashKind::kSha256);
  EXPECT_EQ(files[0].hash, kSha256);
  EXPECT_EQ(files[1].size, 3);
  EXPECT_EQ(files[1].hash_kind, HashKind::kGitSha1);
}

TEST(RepoListing, EveryFaultIsNamed) {
  const std::string oid = R"("oid": ")" + kSha1 + R"(")";
  EXPECT_THAT(Fault("{"), HasSubstr("list"));
  EXPECT_THAT(Fault("{}"), HasSubstr("expected a JSON list"));
  EXPECT_THAT(Fault("[1]"), HasSubstr("entry 0"));
  EXPECT_THAT(Fault("[{}]"), HasSubstr("type"));
  EXPECT_THAT(Fault("[" + Entry("../x", R"("size": 1, )" + oid) + "]"), HasSubstr("file name"));
  EXPECT_THAT(Fault("[" + Entry("x", R"("size": -1, )" + oid) + "]"), HasSubstr("size"));
  EXPECT_THAT(Fault("[" + Entry("x", R"("size": 1e300, )" + oid) + "]"), HasSubstr("size"));
  EXPECT_THAT(Fault("[" + Entry("x", oid) + "]"), HasSubstr("size"));
  EXPECT_THAT(Fault("[" + Entry("x", R"("size": 1, "oid": "../../etc")") + "]"),
              HasSubstr("expected 40 hex digits"));
  EXPECT_THAT(Fault("[" + Entry("x", R"("size": 1, "lfs": [], )" + oid) + "]"), HasSubstr("lfs"));
}

TEST(RepoListing, FilesThatExcludeEachOtherAreRefused) {
  const auto fault = [](std::vector<RemoteFile> files) {
    return CheckListing("list", &files).message();
  };
  const auto file = [](std::string path, int64_t size = 1) {
    return RemoteFile{std::move(path), size, HashKind::kGitSha1, kSha1};
  };
  EXPECT_EQ(fault({file("a/b"), file("a-b"), file("ab")}), "");
  EXPECT_THAT(fault({file("a"), file("b"), file("a")}), HasSubstr("found it twice"));
  EXPECT_THAT(fault({file("a"), file("a-b"), file("a/b")}), HasSubstr("found a file"));
  EXPECT_THAT(fault({file("a/b/c"), file("a")}), HasSubstr("found a file"));
  EXPECT_THAT(fault({file("a", int64_t{1} << 50), file("b", 1)}), HasSubstr("in all"));
}

TEST(RepoListing, ARevisionIsACommit) {
  EXPECT_EQ(*ParseRevision(R"({"sha": ")" + kSha1 + R"("})", "x"), kSha1);
  for (const char* text :
       {"", "[]", "{}", R"({"sha": "main"})", R"({"sha": 1})", R"({"sha": null})"}) {
    EXPECT_EQ(ParseRevision(text, "x").status().code(), StatusCode::kCorrupt) << text;
  }
}

TEST(RepoListing, TheNextPageIsInTheLinkHeader) {
  EXPECT_EQ(NextPage(R"(<https://h/a?cursor=x>; rel="next")"), "https://h/a?cursor=x");
  EXPECT_EQ(NextPage(R"(<https://h/a>; rel="first", <https://h/b>; rel="next")"), "https://h/b");
  for (const char* text : {"", R"(rel="next")", R"(<x; rel="next")", R"(x>; rel="next")",
                           "<https://h/a>; rel=\"prev\""}) {
    EXPECT_EQ(NextPage(text), "") << text;
  }
}

}  // namespace
}  // namespace hadal
