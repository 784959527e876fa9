#include "hub/repo_name.h"

#include <gtest/gtest.h>

namespace hadal {
namespace {

TEST(RepoName, HasAnOrganisationANameAndPerhapsARevision) {
  const auto plain = ParseRepoName("deepseek-ai/DeepSeek-V2-Lite");
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_EQ(plain->org, "deepseek-ai");
  EXPECT_EQ(plain->name, "DeepSeek-V2-Lite");
  EXPECT_EQ(plain->revision, "main");
  EXPECT_EQ(plain->full(), "deepseek-ai/DeepSeek-V2-Lite");
  const auto other = ParseRepoName("o/n@refs/pr/1");
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_EQ(other->revision, "refs/pr/1");
  EXPECT_EQ(other->full(), "o/n@refs/pr/1");
  EXPECT_EQ(ParseRepoName("o/n@main")->full(), "o/n");
}

TEST(RepoName, RefusesWhatCouldBeAPathOrAFlag) {
  for (const char* text :
       {"",         "n",     "/n",    "o/",      "o/n/x",  "../n",   "o/..",     "./n",
        "o/.n",     "-o/n",  "o/-n",  "o/n@",    "o/n@/x", "o/n@x/", "o/n@x//y", "o/n@a..b",
        "o/n@../x", "o n/x", "o/n\n", "o/n@x y", "o\\n/x", "o/n%2F", "o@x/n"}) {
    EXPECT_EQ(ParseRepoName(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_FALSE(ParseRepoName(std::string(97, 'o') + "/n").ok());
}

TEST(RepoPath, StaysBelowItsFolder) {
  for (const char* path :
       {"a", "a/b.c", ".gitattributes", "a/..b/c..", "odd [1]+%.txt", "\xC3\xA4/x"}) {
    EXPECT_TRUE(CheckRepoPath(path).ok()) << path;
  }
  for (const std::string& path :
       {std::string(""), std::string("/a"), std::string("a/"), std::string("a//b"),
        std::string("."), std::string(".."), std::string("a/../b"), std::string("../a"),
        std::string("a/./b"), std::string("a\\b"), std::string("a\nb"), std::string("a\0b", 3),
        std::string("\x7F"), std::string("\xFF"), std::string(241, 'a'), std::string(1025, 'a')}) {
    const Status status = CheckRepoPath(path);
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << path;
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
}

TEST(RepoPath, IsEncodedForAnAddress) {
  EXPECT_EQ(PercentEncoded("a b/c+%?#[1].txt"), "a%20b/c%2B%25%3F%23%5B1%5D.txt");
  EXPECT_EQ(PercentEncoded("\xC3\xA4~"), "%C3%A4~");
}

TEST(RepoPath, MeetsPatternsAcrossFolders) {
  EXPECT_TRUE(MatchesGlob("*.json", "config.json"));
  EXPECT_TRUE(MatchesGlob("*.json", "a/b.json"));
  EXPECT_TRUE(MatchesGlob("*Q4_K_M*", "Q4_K_M/model-00001-of-00002.gguf"));
  EXPECT_TRUE(MatchesGlob("a?[bc]", "axb"));
  EXPECT_FALSE(MatchesGlob("*.json", "config.jsonl"));
}

}  // namespace
}  // namespace hadal
