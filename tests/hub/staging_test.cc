#include "hub/staging.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "sys/mapped_file.h"
#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

namespace fs = std::filesystem;

class StagingTest : public testing::Test {
 protected:
  static RemoteFile File(const std::string& path, const std::string& content) {
    FileDigest digest(HashKind::kGitSha1, static_cast<int64_t>(content.size()));
    digest.Add(std::as_bytes(std::span(content)));
    return {path, static_cast<int64_t>(content.size()), HashKind::kGitSha1, digest.Finish()};
  }

  // Puts a model of one version together, as a pull does.
  void Publish(const std::string& version) {
    auto staging = Staging::Open(target_);
    ASSERT_TRUE(staging.ok()) << staging.status().message();
    Manifest manifest{
        .repo = *ParseRepoName("o/n"), .commit = version, .endpoint = "e", .pulled_at = "t"};
    for (const std::string path : {"a", "b/c"}) {
      manifest.files.push_back(File(path, version + path));
      std::ofstream(staging->DonePath(manifest.files.back())) << version << path;
    }
    const Status status = staging->Publish(manifest);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  void ExpectModel(const std::string& version) const {
    EXPECT_EQ(*ReadFile(target_ + "/a", 100), version + "a");
    EXPECT_EQ(*ReadFile(target_ + "/b/c", 100), version + "b/c");
    const auto manifest = ReadManifest(target_);
    ASSERT_TRUE(manifest.ok() && manifest->has_value());
    EXPECT_EQ((*manifest)->commit, version);
    EXPECT_TRUE(HasAllFiles(**manifest, target_));
  }

  const TempDir dir_;
  const std::string target_ = dir_.File("o/n");
  const std::string folder_ = dir_.File("o/.n.pull");
};

TEST_F(StagingTest, AModelAppearsWholeAndNothingElseStays) {
  Publish("1");
  ExpectModel("1");
  EXPECT_FALSE(fs::exists(folder_));
  Publish("2");
  ExpectModel("2");
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(StagingTest, OneAtATime) {
  const auto first = Staging::Open(target_);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(Staging::Open(target_).status().code(), StatusCode::kResourceExhausted);
}

TEST_F(StagingTest, FilesThatHadTheirNamesWhenAProcessEndedAreCheckedAgain) {
  Publish("1");
  fs::create_directories(folder_);
  fs::rename(target_, folder_ + "/tree");  // as if it had ended before the last step
  const auto staging = Staging::Open(target_);
  ASSERT_TRUE(staging.ok()) << staging.status().message();
  EXPECT_FALSE(fs::exists(folder_ + "/tree"));
  for (const RemoteFile& file : {File("a", "1a"), File("b/c", "1b/c")}) {
    EXPECT_FALSE(staging->IsDone(file));
    EXPECT_EQ(staging->BytesThere(file), file.size);
  }
}

TEST_F(StagingTest, AnOldModelThatWasTakenAwayComesBack) {
  Publish("1");
  fs::create_directories(folder_);
  fs::rename(target_, folder_ + "/old");
  ASSERT_TRUE(Staging::Open(target_).ok());
  ExpectModel("1");
  EXPECT_FALSE(fs::exists(folder_ + "/old"));
}

TEST_F(StagingTest, TakesOverWhatTheModelHasIfItIsRight) {
  Publish("1");
  std::ofstream(target_ + "/a") << "9a";
  const auto staging = Staging::Open(target_);
  ASSERT_TRUE(staging.ok());
  staging->Reuse(File("a", "1a"));
  staging->Reuse(File("b/c", "1b/c"));
  staging->Reuse(File("none", "x"));
  EXPECT_FALSE(staging->IsDone(File("a", "1a")));
  EXPECT_TRUE(staging->IsDone(File("b/c", "1b/c")));
}

TEST(StagingName, CanBeTold) {
  std::string target;
  EXPECT_TRUE(IsStagingName(".n.pull", &target));
  EXPECT_EQ(target, "n");
  EXPECT_EQ(StagingFolder("/x/o/n"), "/x/o/.n.pull");
  for (const char* name : {"n", ".n", "n.pull", ".pull"})
    EXPECT_FALSE(IsStagingName(name, &target)) << name;
}

}  // namespace
}  // namespace hadal
