#include "engine/prefix_store.h"

#include <cstddef>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/prefix_file.h"
#include "tests/support/fake_runner.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

constexpr int kBlockTokens = 4;
constexpr int64_t kBlockBytes = 100;

std::vector<std::byte> Rows(int value) {
  return std::vector<std::byte>(static_cast<size_t>(kBlockBytes), static_cast<std::byte>(value));
}

// A store whose clock stands still until the test moves it.
struct StoreUnderTest {
  explicit StoreUnderTest(int64_t max_bytes = 1 << 20) { Open(max_bytes); }

  void Open(int64_t max_bytes, Hash128 rows_key = {7, 8}) {
    auto opened = PrefixStore::Open({.folder = dir.path() + "/cache",
                                     .max_bytes = max_bytes,
                                     .rows_key = rows_key,
                                     .block_tokens = kBlockTokens,
                                     .block_bytes = kBlockBytes,
                                     .min_age_s = 60,
                                     .now_s = [this] { return now_s; }});
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    store = std::move(opened).value();
  }

  PrefixBlock Block(const std::vector<TokenId>& tokens, int block_idx, Hash128 salt = {}) const {
    return {.key = PrefixKeys(salt, tokens, kBlockTokens)[static_cast<size_t>(block_idx)],
            .salt = salt,
            .block_idx = block_idx,
            .prefix = std::span(tokens).first(static_cast<size_t>((block_idx + 1) * kBlockTokens))};
  }
  void Write(const std::vector<TokenId>& tokens, int block_idx, int value) {
    const PrefixBlock block = Block(tokens, block_idx);
    ASSERT_TRUE(store->Claim(block.key));
    store->Write(block, Rows(value));
  }
  // The value that the block's rows hold, or -1.
  int Read(const std::vector<TokenId>& tokens, int block_idx, Hash128 salt = {}) {
    std::vector<std::byte> rows(static_cast<size_t>(kBlockBytes));
    if (!store->Read(Block(tokens, block_idx, salt), rows)) return -1;
    EXPECT_EQ(rows, Rows(static_cast<int>(rows[0])));
    return static_cast<int>(rows[0]);
  }
  int Count(const std::vector<TokenId>& tokens) const {
    return store->CountFrom(PrefixKeys({}, tokens, kBlockTokens), 0);
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir.path()))
      if (entry.is_regular_file()) paths.push_back(entry.path().string());
    return paths;
  }

  TempDir dir;
  int64_t now_s = std::time(nullptr);  // files carry the time of the system
  std::unique_ptr<PrefixStore> store;
};

TEST(PrefixStore, FindsWhatWasWrittenAlsoAfterARestart) {
  StoreUnderTest test;
  const std::vector<TokenId> tokens = FakePrompt(10);
  test.Write(tokens, 0, 1);
  test.Write(tokens, 1, 2);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(test.Count(tokens), 2);
    EXPECT_EQ(test.Count(FakePrompt(10, 9)), 0);
    EXPECT_EQ(test.Read(tokens, 0), 1);
    EXPECT_EQ(test.Read(tokens, 1), 2);
    test.Open(1 << 20);
  }
  EXPECT_EQ(test.store->stats().num_files, 2);
}

TEST(PrefixStore, ClaimsABlockOnce) {
  StoreUnderTest test;
  const std::vector<TokenId> tokens = FakePrompt(4);
  const PrefixBlock block = test.Block(tokens, 0);
  EXPECT_FALSE(test.store->HasOrClaimed(block.key));
  EXPECT_TRUE(test.store->Claim(block.key));
  EXPECT_FALSE(test.store->Claim(block.key));
  EXPECT_TRUE(test.store->HasOrClaimed(block.key));
  test.store->Unclaim(block.key);
  EXPECT_TRUE(test.store->Claim(block.key));
  test.store->Write(block, Rows(1));
  EXPECT_FALSE(test.store->Claim(block.key)) << "it is there";
}

// C094: salts collided.
TEST(PrefixStore, KeepsSaltsAndModelsApart) {
  StoreUnderTest test;
  const std::vector<TokenId> tokens = FakePrompt(4);
  test.Write(tokens, 0, 1);
  EXPECT_EQ(test.Read(tokens, 0, {5, 5}), -1);
  test.Open(1 << 20, {7, 9});
  EXPECT_EQ(test.Count(tokens), 0);
  EXPECT_EQ(test.Read(tokens, 0), -1);
  EXPECT_EQ(test.store->stats().num_files, 1) << "the other model's file takes room";
  test.Open(1 << 20);
  EXPECT_EQ(test.Read(tokens, 0), 1);
}

// Another prefix whose key is the same, another model's or salt's file put in place, by whoever.
TEST(PrefixStore, ComparesTokensSaltAndModelNotOnlyTheName) {
  StoreUnderTest test;
  const std::vector<TokenId> tokens = FakePrompt(4), other = FakePrompt(4, 3);
  const auto write_as = [&](const PrefixFileId& id) {
    const PrefixBlock block = test.Block(tokens, 0);
    test.Write(tokens, 0, 1);
    const std::string path = test.Files()[0];
    ASSERT_TRUE(WritePrefixFile(path, id, Rows(9)).ok());
    std::vector<std::byte> rows(static_cast<size_t>(kBlockBytes));
    EXPECT_FALSE(test.store->Read(block, rows));
    EXPECT_TRUE(std::filesystem::exists(path)) << "it may be someone else's";
    std::filesystem::remove(path);
  };
  const PrefixFileId right{
      .rows_key = {7, 8}, .salt = {}, .block_tokens = kBlockTokens, .prefix = tokens};
  PrefixFileId wrong = right;
  wrong.prefix = other;
  write_as(wrong);
  wrong = right;
  wrong.salt = {1, 0};
  write_as(wrong);
  wrong = right;
  wrong.rows_key = {7, 0};
  write_as(wrong);
  wrong = right;
  wrong.block_tokens = 2;
  write_as(wrong);
  EXPECT_EQ(test.store->stats().num_faults, 4);
}

TEST(PrefixStore, DetectsEveryTruncationAndRemovesTheFile) {
  StoreUnderTest test;
  const std::vector<TokenId> tokens = FakePrompt(4);
  const int64_t size = PrefixFileBytes(tokens.size(), kBlockBytes);
  for (int64_t length = 0; length < size; length += 7) {
    test.Write(tokens, 0, 1);
    const std::string path = test.Files()[0];
    std::filesystem::resize_file(path, static_cast<size_t>(length));
    EXPECT_EQ(test.Read(tokens, 0), -1) << length;
    EXPECT_TRUE(test.Files().empty()) << length;
    EXPECT_EQ(test.store->stats().num_files, 0);
  }
}

TEST(PrefixStore, DetectsEveryFlippedBit) {
  StoreUnderTest test;
  const std::vector<TokenId> tokens = FakePrompt(4);
  test.Write(tokens, 0, 1);
  const std::string path = test.Files()[0];
  std::string sound;
  {
    std::ifstream file(path, std::ios::binary);
    sound.assign(std::istreambuf_iterator<char>(file), {});
  }
  ASSERT_EQ(static_cast<int64_t>(sound.size()), PrefixFileBytes(tokens.size(), kBlockBytes));
  std::vector<std::byte> rows(static_cast<size_t>(kBlockBytes));
  const PrefixFileId id{
      .rows_key = {7, 8}, .salt = {}, .block_tokens = kBlockTokens, .prefix = tokens};
  ASSERT_TRUE(ReadPrefixFile(path, id, rows).ok());
  for (size_t bit = 0; bit < sound.size() * 8; ++bit) {
    std::string damaged = sound;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    std::ofstream(path, std::ios::binary) << damaged;
    const Status status = ReadPrefixFile(path, id, rows);
    EXPECT_FALSE(status.ok()) << "bit " << bit;
    EXPECT_NE(status.message().find(path), std::string::npos);
  }
}

TEST(PrefixStore, ThrowsOutWhatWasNotUsedForLongestLastBlocksFirst) {
  const int64_t one = PrefixFileBytes(12, kBlockBytes);
  StoreUnderTest test(3 * one);
  const std::vector<TokenId> old = FakePrompt(12, 1), young = FakePrompt(4, 2);
  for (int i = 0; i < 3; ++i) test.Write(old, i, i);
  test.now_s += 100;
  test.Write(young, 0, 9);
  EXPECT_EQ(test.Count(old), 2) << "the last block went";
  EXPECT_EQ(test.Count(young), 1);
  // After a restart the order is that of the files' times.
  test.now_s += 100;
  test.store->Touch(PrefixKeys({}, old, kBlockTokens), 2);
  test.Open(3 * one);
  test.now_s += 100;
  test.Write(FakePrompt(12, 3), 0, 9);
  EXPECT_EQ(test.Count(young), 0);
  EXPECT_EQ(test.Count(old), 2);
  EXPECT_LE(test.store->stats().bytes, 3 * one);
}

// C098: the cache threw out what it had just written, for ever.
TEST(PrefixStore, DoesNotWriteAndDeleteInTurn) {
  const int64_t one = PrefixFileBytes(4, kBlockBytes);
  StoreUnderTest test(2 * one);
  for (int round = 0; round < 4; ++round) {
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const std::vector<TokenId> tokens = FakePrompt(4, seed);
      const PrefixBlock block = test.Block(tokens, 0);
      if (test.store->Claim(block.key)) test.store->Write(block, Rows(1));
      test.store->Touch(PrefixKeys({}, FakePrompt(4, seed), kBlockTokens), 1);
      test.now_s += 10;
    }
  }
  EXPECT_EQ(test.store->stats().num_writes, 2);
  EXPECT_EQ(test.store->stats().num_files, 2);
}

// C098: budget smaller than one entry.
TEST(PrefixStore, LeavesOutWhatIsLargerThanTheLimit) {
  StoreUnderTest test(50);
  const std::vector<TokenId> tokens = FakePrompt(4);
  const PrefixBlock block = test.Block(tokens, 0);
  ASSERT_TRUE(test.store->Claim(block.key));
  test.store->Write(block, Rows(1));
  EXPECT_TRUE(test.Files().empty());
  EXPECT_EQ(test.store->stats().bytes, 0);
}

TEST(PrefixStore, LeavesOtherFilesAloneAndRemovesAbandonedOnes) {
  StoreUnderTest test;
  test.Write(FakePrompt(4), 0, 1);
  const std::string path = test.Files()[0];
  const std::string folder = std::filesystem::path(path).parent_path().string();
  for (const std::string name : {"notes.txt", "zz-1.rows", "abc.part"})
    std::ofstream(folder + "/" + name) << "mine";
  std::ofstream(test.dir.path() + "/cache/README") << "mine";
  std::ofstream(path + ".123.part") << "half";
  test.now_s += 3600;
  test.Open(1 << 20);
  EXPECT_EQ(test.store->stats().num_files, 1);
  EXPECT_FALSE(std::filesystem::exists(path + ".123.part"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/abc.part"));
  EXPECT_EQ(test.Files().size(), 5u);
}

TEST(PrefixStore, SaysWhichFolderItCannotUse) {
  const TempDir dir;
  const std::string file = dir.Write("file", "x");
  const auto opened = PrefixStore::Open(
      {.folder = file, .rows_key = {1, 1}, .block_tokens = 4, .block_bytes = 4, .now_s = {}});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), StatusCode::kIo);
  EXPECT_NE(opened.status().message().find(file), std::string::npos);
  const auto keyless =
      PrefixStore::Open({.folder = dir.path(), .block_tokens = 4, .block_bytes = 4, .now_s = {}});
  EXPECT_EQ(keyless.status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace hadal
