// Sections 13 and 15 of the field's cases, as far as they reach the engine: nobody's answer depends
// on the company, on failures of others, or on readers that leave.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/engine_harness.h"

namespace hadal {
namespace {

using namespace std::chrono_literals;

GenerationRequest Ids(int num_prompt_tokens, int max_tokens, uint64_t prompt_seed = 0) {
  GenerationRequest request;
  request.input = FakePrompt(num_prompt_tokens, prompt_seed);
  request.max_tokens = max_tokens;
  return request;
}

// C099, C101: a greedy answer depended on who else was served; words of one request showed up in
// another.
TEST(Isolation, GivesEveryoneHisOwnAnswerAmongManyThreads) {
  IdEngine id_engine({.max_context_tokens = 128, .num_cache_blocks = 60, .num_drafts = 2});
  std::vector<std::thread> clients;
  std::atomic<int> num_wrong{0}, num_right{0};
  for (uint64_t client = 0; client < 8; ++client) {
    clients.emplace_back([&, client] {
      for (uint64_t round = 0; round < 6; ++round) {
        GenerationRequest request =
            Ids(3 + static_cast<int>((client * 7 + round) % 30), 20, client);
        request.sampling.temperature = round % 2 == 0 ? 0.0f : 1.0f;
        request.seed = client;
        const auto stream = id_engine.engine->Submit(request);
        SamplingParams sampling = request.sampling;
        sampling.seed = client;
        const std::vector<TokenId> expected = id_engine.runner->Expected(
            std::get<std::vector<TokenId>>(request.input), sampling, 20, {});
        ++(IdsOf(ReadOne(stream.value().get())) == expected ? num_right : num_wrong);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(num_wrong, 0);
  EXPECT_EQ(num_right, 48);
}

// C056: one row of NaN aborted the process.
TEST(Isolation, EndsOnlyTheRequestWhoseLogitsAreNotFinite) {
  IdEngine id_engine;
  id_engine.runner->broken.insert({1});
  std::vector<std::shared_ptr<ResponseStream>> streams;
  for (uint64_t i = 0; i < 3; ++i)
    streams.push_back(id_engine.engine->Submit(Ids(6, 10, i)).value());
  for (uint64_t i = 0; i < 3; ++i) {
    const CollectedChoice choice = ReadOne(streams[i].get());
    if (i == 1) {
      EXPECT_EQ(choice.end.finish, FinishReason::kError);
      EXPECT_NE(choice.end.error.find("not finite"), std::string::npos);
    } else {
      EXPECT_EQ(IdsOf(choice), id_engine.runner->Expected(FakePrompt(6, i), {}, 10, {}));
    }
  }
}

// C051: an error in a long prefill left the client hanging.
TEST(Isolation, TellsTheReaderOfAStepThatFailedAndGoesOn) {
  IdEngine id_engine({.max_step_tokens = 8});
  std::atomic<int> step{0};
  id_engine.runner->before_step = [&step](const BatchPlan&) {
    return ++step == 3 ? Status::Internal("the device is gone") : Status::Ok();
  };
  const auto failed = id_engine.engine->Submit(Ids(100, 5));
  const CollectedChoice choice = ReadOne(failed.value().get());
  EXPECT_EQ(choice.end.finish, FinishReason::kError);
  EXPECT_EQ(choice.end.error, "the device is gone");
  const auto next = id_engine.engine->Submit(Ids(10, 5, 3));
  EXPECT_EQ(IdsOf(ReadOne(next.value().get())),
            id_engine.runner->Expected(FakePrompt(10, 3), {}, 5, {}));
}

// C108: work went on after the client had left; 200 times, then the cache is whole.
TEST(Isolation, StopsWorkingForReadersThatLeave) {
  IdEngine id_engine({.max_context_tokens = 200, .num_cache_blocks = 50});
  for (uint64_t round = 0; round < 200; ++round) {
    const auto stream = id_engine.engine->Submit(Ids(100, -1, round)).value();
    ResponseChunk chunk;
    if (round % 2 == 0) {
      ASSERT_TRUE(stream->Next(&chunk));
    }
    id_engine.engine->Cancel(*stream);
    ResponseCollector collector(1);
    collector.Add(chunk);
    collector.ReadAll(stream.get());
    const FinishReason finish = collector.choices()[0].end.finish;
    EXPECT_TRUE(finish == FinishReason::kCancelled || finish == FinishReason::kLength);
  }
  const auto stream = id_engine.engine->Submit(Ids(190, 5));
  EXPECT_EQ(ReadOne(stream.value().get()).tokens.size(), 5u);
}

// C109, C110: a queued client that left stopped someone else's answer; a stop hit the next request.
TEST(Isolation, CancelsNobodyElse) {
  for (uint64_t round = 0; round < 30; ++round) {
    IdEngine id_engine({.max_step_sequences = 1});
    id_engine.runner->holds = [](const BatchPlan&) { return true; };
    const auto running = id_engine.engine->Submit(Ids(6, 20, round)).value();
    const auto queued = id_engine.engine->Submit(Ids(6, 20, round + 1000)).value();
    id_engine.runner->WaitUntilHeld();
    id_engine.engine->Cancel(*queued);
    id_engine.runner->Release();
    EXPECT_EQ(ReadOne(queued.get()).end.finish, FinishReason::kCancelled);
    EXPECT_EQ(IdsOf(ReadOne(running.get())),
              id_engine.runner->Expected(FakePrompt(6, round), {}, 20, {}));
    id_engine.engine->Cancel(*running);  // has ended: nothing may happen
  }
}

// C111: one stream was closed while another was in the middle of a long prefill.
TEST(Isolation, SurvivesALeaverDuringALongPrefill) {
  IdEngine id_engine({.max_context_tokens = 240, .num_cache_blocks = 200, .max_step_tokens = 8});
  for (uint64_t round = 0; round < 30; ++round) {
    const auto leaver = id_engine.engine->Submit(Ids(8, -1, round)).value();
    const auto reader = id_engine.engine->Submit(Ids(200, 4, round)).value();
    ResponseChunk chunk;
    leaver->Next(&chunk);
    id_engine.engine->Cancel(*leaver);
    EXPECT_EQ(IdsOf(ReadOne(reader.get())),
              id_engine.runner->Expected(FakePrompt(200, round), {}, 4, {}));
  }
}

TEST(Isolation, NeverWaitsForAReaderWhoDoesNotRead) {
  FakeRunnerOptions options{.max_context_tokens = 4000, .num_cache_blocks = 1200};
  EngineOptions engine_options = OptionsFor(options);
  engine_options.max_unread_bytes = 2000;
  IdEngine id_engine(options, engine_options);
  const auto lazy = id_engine.engine->Submit(Ids(6, 3000)).value();
  const auto eager = id_engine.engine->Submit(Ids(6, 60, 2)).value();
  const CollectedChoice choice = ReadOne(eager.get());
  EXPECT_EQ(choice.tokens.size(), 60u);
  while (id_engine.engine->metrics().num_failed == 0) std::this_thread::sleep_for(1ms);
  const CollectedChoice late = ReadOne(lazy.get());
  EXPECT_EQ(late.end.finish, FinishReason::kError);
  EXPECT_NE(late.end.error.find("too slow"), std::string::npos);
  EXPECT_LT(late.tokens.size(), 200u);
}

TEST(Isolation, EndsOpenStreamsWhenTheEngineGoes) {
  auto id_engine = std::make_unique<IdEngine>(
      FakeRunnerOptions{.max_context_tokens = 4000, .num_cache_blocks = 1200});
  id_engine->runner->holds = [](const BatchPlan&) { return true; };
  const auto stream = id_engine->engine->Submit(Ids(6, 3000)).value();
  std::thread reader(
      [&stream] { EXPECT_EQ(ReadOne(stream.get()).end.finish, FinishReason::kCancelled); });
  id_engine->runner->WaitUntilHeld();
  id_engine.reset();
  reader.join();
}

}  // namespace
}  // namespace hadal
