// Prefixes on disk through the engine: text and usage with files, after restarts, with files that
// are damaged, with several answers and with clients that leave.
#include "engine/prefix_disk.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/engine_harness.h"
#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

constexpr FakeRunnerOptions kRunner{.max_context_tokens = 256, .num_cache_blocks = 200};

// An engine whose prefixes lie in `dir`; a new one for each restart.
struct DiskEngine {
  explicit DiskEngine(const TempDir& dir, const FakeRunnerOptions& options = kRunner) {
    auto fake = std::make_unique<FakeRunner>(options);
    runner = fake.get();
    auto store = PrefixStore::Open({.folder = dir.path(),
                                    .rows_key = runner->info().rows_key,
                                    .block_tokens = runner->info().block_tokens,
                                    .block_bytes = runner->info().block_bytes,
                                    .now_s = {}});
    HADAL_CHECK(store.ok());
    engine = std::make_unique<Engine>(OptionsFor(options), std::move(fake), nullptr,
                                      std::move(store).value());
  }

  FakeRunner* runner = nullptr;
  std::unique_ptr<Engine> engine;
};

GenerationRequest Ids(std::vector<TokenId> prompt, int max_tokens) {
  GenerationRequest request;
  request.input = std::move(prompt);
  request.max_tokens = max_tokens;
  return request;
}

// Asks, and expects the text that the prompt gives alone. Returns the number of cached tokens.
int Ask(DiskEngine* disk, const std::vector<TokenId>& prompt, int max_tokens = 12) {
  const auto stream = disk->engine->Submit(Ids(prompt, max_tokens));
  HADAL_CHECK(stream.ok());
  const CollectedChoice choice = ReadOne(stream.value().get());
  EXPECT_EQ(IdsOf(choice), disk->runner->Expected(prompt, {}, max_tokens, {}));
  return choice.end.usage.cached_tokens;
}

TEST(PrefixDisk, ARestartReadsThePromptFromDisk) {
  const TempDir dir;
  const std::vector<TokenId> prompt = FakePrompt(41);
  {
    DiskEngine disk(dir);
    EXPECT_EQ(Ask(&disk, prompt), 0);
    EXPECT_EQ(Ask(&disk, prompt), 40) << "from memory";
    EXPECT_EQ(disk.engine->metrics().num_disk_hit_tokens, 0);
  }
  DiskEngine disk(dir);
  EXPECT_EQ(Ask(&disk, prompt), 40);
  EXPECT_EQ(disk.engine->metrics().num_disk_hit_tokens, 40);
  EXPECT_EQ(disk.runner->num_computed_tokens(), 1 + 11);
  EXPECT_EQ(Ask(&disk, prompt), 40) << "from memory";
  EXPECT_EQ(disk.engine->metrics().num_disk_hit_tokens, 40);
}

TEST(PrefixDisk, APromptOfWholeBlocksStillComputesItsLastToken) {
  const TempDir dir;
  for (int round = 0; round < 3; ++round) {
    DiskEngine disk(dir);
    EXPECT_EQ(Ask(&disk, FakePrompt(40)), round == 0 ? 0 : 36);
  }
}

TEST(PrefixDisk, AddsTheRestOfAPromptWhoseBeginningIsInMemory) {
  const TempDir dir;
  std::vector<TokenId> prompt = FakePrompt(41);
  {
    DiskEngine disk(dir);
    Ask(&disk, prompt);
  }
  DiskEngine disk(dir);
  const std::vector<TokenId> beginning(prompt.begin(), prompt.begin() + 21);
  EXPECT_EQ(Ask(&disk, beginning), 20);
  EXPECT_EQ(Ask(&disk, prompt), 40);
  EXPECT_EQ(disk.engine->metrics().num_disk_hit_tokens, 40) << "no block was read twice";
  prompt[30] = TokenId{(prompt[30].value + 1) % 90};
  EXPECT_EQ(Ask(&disk, prompt), 28);
}

TEST(PrefixDisk, GoesOnWithoutFilesThatAreDamagedOrGone) {
  for (const std::string damage : {"cut", "flip", "remove"}) {
    const TempDir dir;
    const std::vector<TokenId> prompt = FakePrompt(41);
    {
      DiskEngine disk(dir);
      Ask(&disk, prompt);
    }
    DiskEngine disk(dir);
    std::string path;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir.path()))
      if (entry.path().string().ends_with("-5.rows")) path = entry.path().string();
    ASSERT_FALSE(path.empty());
    if (damage == "cut") std::filesystem::resize_file(path, 100);
    if (damage == "remove") std::filesystem::remove(path);
    if (damage == "flip") {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(-3, std::ios::end);
      file.put('x');
    }
    EXPECT_EQ(Ask(&disk, prompt), 20) << damage;
    EXPECT_EQ(disk.engine->metrics().num_disk_faults, damage == "remove" ? 0 : 1);
  }
}

TEST(PrefixDisk, SharesAmongSeveralAnswers) {
  const TempDir dir;
  const std::vector<TokenId> prompt = FakePrompt(41);
  {
    DiskEngine disk(dir);
    Ask(&disk, prompt);
  }
  DiskEngine disk(dir);
  GenerationRequest request = Ids(prompt, 6);
  request.num_choices = 3;
  const auto stream = disk.engine->Submit(request);
  ResponseCollector collector(3);
  collector.ReadAll(stream.value().get());
  for (const CollectedChoice& choice : collector.choices()) {
    EXPECT_EQ(choice.end.usage.cached_tokens, 40);
    EXPECT_EQ(IdsOf(choice), disk.runner->Expected(prompt, {}, 6, {}));
  }
  EXPECT_EQ(disk.engine->metrics().num_disk_hit_tokens, 40);
}

TEST(PrefixDisk, KeepsSaltsApart) {
  const TempDir dir;
  const std::vector<TokenId> prompt = FakePrompt(41);
  {
    DiskEngine disk(dir);
    Ask(&disk, prompt);
  }
  DiskEngine disk(dir);
  GenerationRequest request = Ids(prompt, 4);
  request.cache_salt = "tenant";
  const auto stream = disk.engine->Submit(request);
  EXPECT_EQ(ReadOne(stream.value().get()).end.usage.cached_tokens, 0);
}

// Rows computed in another form have other bits.
TEST(PrefixDisk, DoesNotTakeRowsOfAnotherForm) {
  const TempDir dir;
  FakeRunnerOptions one_form = kRunner;
  one_form.has_one_form = true;
  {
    DiskEngine disk(dir, one_form);
    Ask(&disk, FakePrompt(41));
  }
  DiskEngine disk(dir);
  EXPECT_EQ(Ask(&disk, FakePrompt(41)), 0);
}

TEST(PrefixDisk, ClientsMayLeaveWhileTheirRowsAreRead) {
  const TempDir dir;
  const std::vector<TokenId> prompt = FakePrompt(241);
  {
    DiskEngine disk(dir);
    Ask(&disk, prompt, 4);
  }
  for (int round = 0; round < 20; ++round) {
    DiskEngine disk(dir);
    disk.runner->holds = [](const BatchPlan&) { return true; };
    const auto leaving = disk.engine->Submit(Ids(prompt, 8));
    disk.engine->Cancel(*leaving.value());
    disk.runner->Release();
    EXPECT_EQ(ReadOne(leaving.value().get()).end.finish, FinishReason::kCancelled);
    if (round % 2 == 0) continue;  // the engine goes while rows are read
    EXPECT_EQ(Ask(&disk, FakePrompt(9, static_cast<uint64_t>(100 + round))), 0);
    EXPECT_EQ(disk.engine->metrics().num_free_cache_blocks, kRunner.num_cache_blocks);
  }
}

}  // namespace
}  // namespace hadal
