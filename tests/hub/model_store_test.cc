#include "hub/model_store.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "hub/staging.h"
#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

namespace fs = std::filesystem;

class ModelStoreTest : public testing::Test {
 protected:
  void Put(const std::string& name) const {
    const RepoName repo = *ParseRepoName(name);
    const std::string folder = store_.FolderOf(repo);
    fs::create_directories(folder);
    std::ofstream(folder + "/config.json") << "{}";
    const Manifest manifest{
        .repo = repo,
        .commit = std::string(40, 'c'),
        .endpoint = "https://h",
        .pulled_at = "2026-01-01T00:00:00Z",
        .files = {{"config.json", 2, HashKind::kGitSha1, std::string(40, 'a')}}};
    ASSERT_TRUE(WriteManifest(manifest, folder).ok());
  }

  const TempDir dir_;
  const ModelStore store_ = ModelStore(dir_.File("models"));
};

TEST_F(ModelStoreTest, FindsAndListsWhatWasPulled) {
  EXPECT_TRUE(store_.List().empty());
  Put("o/n");
  Put("o/n@refs/pr/1");
  Put("a/n");
  fs::create_directories(store_.root() + "/o/somebody's");
  std::ofstream(store_.root() + "/stray") << "x";
  const std::vector<StoredModel> models = store_.List();
  ASSERT_EQ(models.size(), 3u);
  EXPECT_EQ(models[0].repo.full(), "a/n");
  EXPECT_EQ(models[1].repo.full(), "o/n");
  EXPECT_EQ(models[2].repo.full(), "o/n@refs/pr/1");
  EXPECT_EQ(models[1].num_bytes, 2);
  EXPECT_FALSE(models[1].is_unfinished);
  EXPECT_EQ(store_.Find(models[1].repo), models[1].folder);
  EXPECT_FALSE(store_.Find(*ParseRepoName("o/x")).has_value());
}

TEST_F(ModelStoreTest, AnUnfinishedPullIsListedButNotFound) {
  const RepoName repo = *ParseRepoName("o/n");
  const auto staging = Staging::Open(store_.FolderOf(repo));
  ASSERT_TRUE(staging.ok());
  ASSERT_EQ(store_.List().size(), 1u);
  EXPECT_TRUE(store_.List()[0].is_unfinished);
  EXPECT_FALSE(store_.Find(repo).has_value());
}

TEST_F(ModelStoreTest, RemovesAModelAndNothingElse) {
  Put("o/n");
  Put("o/n@v1");
  const auto bytes = store_.Remove(*ParseRepoName("o/n"));
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_GT(*bytes, 2);
  ASSERT_EQ(store_.List().size(), 1u);
  EXPECT_EQ(store_.List()[0].repo.full(), "o/n@v1");
  EXPECT_EQ(store_.Remove(*ParseRepoName("o/n")).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(store_.Remove(*ParseRepoName("o/n@v1")).ok());
  EXPECT_FALSE(fs::exists(store_.root() + "/o"));
}

TEST_F(ModelStoreTest, DoesNotRemoveWhatIsBeingPulled) {
  Put("o/n");
  const auto staging = Staging::Open(store_.FolderOf(*ParseRepoName("o/n")));
  ASSERT_TRUE(staging.ok());
  EXPECT_EQ(store_.Remove(*ParseRepoName("o/n")).status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(store_.Find(*ParseRepoName("o/n")).has_value());
}

}  // namespace
}  // namespace hadal
