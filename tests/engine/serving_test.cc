// What a server needs of the engine beside answers: room in the queue, deadlines, cancelling in the
// middle of a long step, sequences that leave the cache for a while.
#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/engine_harness.h"

namespace hadal {
namespace {

GenerationRequest Ids(int num_prompt_tokens, int max_tokens, uint64_t prompt_seed = 0) {
  GenerationRequest request;
  request.input = FakePrompt(num_prompt_tokens, prompt_seed);
  request.max_tokens = max_tokens;
  return request;
}

// Steps that read a prompt do not end by themselves.
bool ReadsAPrompt(const BatchPlan& plan) {
  return std::ranges::any_of(plan.slices,
                             [](const SequenceSlice& slice) { return slice.num_tokens > 50; });
}

// C108: work went on after the client left. A long step does not keep it; how long breaking one off
// takes is measured (bench/server).
TEST(Cancel, BreaksALongStepOff) {
  const FakeRunnerOptions options{.max_context_tokens = 256};
  IdEngine id_engine(options);
  id_engine.runner->holds = ReadsAPrompt;
  const auto leaving = id_engine.engine->Submit(Ids(100, 20));
  ASSERT_TRUE(leaving.ok());
  id_engine.runner->WaitUntilHeld();
  const auto staying = id_engine.engine->Submit(Ids(5, 20, 1));
  ASSERT_TRUE(staying.ok());
  id_engine.engine->Cancel(*leaving.value());
  EXPECT_EQ(ReadOne(leaving.value().get()).end.finish, FinishReason::kCancelled);
  EXPECT_EQ(IdsOf(ReadOne(staying.value().get())),
            id_engine.runner->Expected(FakePrompt(5, 1), {}, 20, {}));
  EXPECT_EQ(id_engine.engine->metrics().num_free_cache_blocks, options.num_cache_blocks);
}

// The others of a step that was broken off for someone else get the text they get alone.
TEST(Cancel, LeavesTheOthersOfTheStepAsTheyWere) {
  const FakeRunnerOptions options{.max_context_tokens = 256};
  EngineOptions engine_options = OptionsFor(options);
  engine_options.max_step_ms = 0;  // the whole prompt is one step
  IdEngine id_engine(options, engine_options);
  id_engine.runner->holds = ReadsAPrompt;
  const auto staying = id_engine.engine->Submit(Ids(9, 100, 1));
  ResponseChunk first;
  ASSERT_TRUE(staying.value()->Next(&first));
  const auto leaving = id_engine.engine->Submit(Ids(100, 20));
  id_engine.runner->WaitUntilHeld();
  id_engine.engine->Cancel(*leaving.value());
  ResponseCollector collector(1);
  collector.Add(first);
  collector.ReadAll(staying.value().get());
  EXPECT_EQ(IdsOf(collector.choices()[0]),
            id_engine.runner->Expected(FakePrompt(9, 1), {}, 100, {}));
}

TEST(Queue, RefusesWhatDoesNotFitAndSaysWhenToComeBack) {
  const FakeRunnerOptions options{.max_context_tokens = 256};
  EngineOptions engine_options = OptionsFor(options);
  engine_options.max_pending_sequences = 2;
  engine_options.max_pending_prompt_tokens = 120;
  IdEngine id_engine(options, engine_options);
  id_engine.runner->holds = ReadsAPrompt;
  Engine& engine = *id_engine.engine;
  const auto first = engine.Submit(Ids(100, 20));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(engine.Submit(Ids(21, 2)).status().code(), StatusCode::kResourceExhausted)
      << "too many tokens";
  ASSERT_TRUE(engine.Submit(Ids(5, 2)).ok());
  const Status full = engine.Submit(Ids(5, 2)).status();
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(full.message(),
            "2 sequences with 105 prompt tokens are waiting or running, at most 2 with 120 are "
            "taken");
  EXPECT_EQ(engine.metrics().num_refused, 2);
  EXPECT_GE(engine.RetryAfterSeconds(), 1);
  EXPECT_LE(engine.RetryAfterSeconds(), 60);
  engine.Cancel(*first.value());
  ReadOne(first.value().get());
  EXPECT_TRUE(engine.Submit(Ids(5, 2)).ok()) << "the room is free again";
}

TEST(Queue, TakesOneRequestThatIsLargerThanTheLimit) {
  const FakeRunnerOptions options{.max_context_tokens = 256};
  EngineOptions engine_options = OptionsFor(options);
  engine_options.max_pending_prompt_tokens = 10;
  IdEngine id_engine(options, engine_options);
  const auto stream = id_engine.engine->Submit(Ids(30, 2));
  ASSERT_TRUE(stream.ok());
  ReadOne(stream.value().get());
}

TEST(Deadline, EndsTheAnswerWithItsOwnError) {
  const FakeRunnerOptions options{.max_context_tokens = 256};
  int64_t now_us = 0;
  std::mutex mutex;
  EngineOptions engine_options = OptionsFor(options);
  engine_options.clock = [&] {
    const std::lock_guard lock(mutex);
    return now_us += 1000;
  };
  IdEngine id_engine(options, engine_options);
  GenerationRequest request = Ids(10, 200);
  request.deadline_ms = 60;
  const auto stream = id_engine.engine->Submit(request);
  ASSERT_TRUE(stream.ok());
  const CollectedChoice choice = ReadOne(stream.value().get());
  EXPECT_EQ(choice.end.finish, FinishReason::kError);
  EXPECT_EQ(choice.end.error_code, StatusCode::kDeadlineExceeded);
  EXPECT_EQ(id_engine.engine->metrics().num_expired, 1);
  const std::vector<TokenId> ids = IdsOf(choice);
  EXPECT_EQ(ids, id_engine.runner->Expected(FakePrompt(10), {}, static_cast<int>(ids.size()), {}));
}

TEST(Preemption, KeepsRowsInMemoryAndGivesTheSameText) {
  const FakeRunnerOptions options{.max_context_tokens = 60, .num_cache_blocks = 19};
  IdEngine id_engine(options);
  id_engine.runner->holds = [](const BatchPlan&) { return true; };
  std::vector<std::shared_ptr<ResponseStream>> streams;
  for (uint64_t i = 0; i < 3; ++i)
    streams.push_back(id_engine.engine->Submit(Ids(10, 40, i)).value());
  id_engine.runner->Release();
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(IdsOf(ReadOne(streams[i].get())),
              id_engine.runner->Expected(FakePrompt(10, i), {}, 40, {}));
  }
  EXPECT_GT(id_engine.engine->metrics().num_saves, 0);
  EXPECT_EQ(id_engine.engine->metrics().num_saves, id_engine.engine->metrics().num_preemptions);
}

}  // namespace
}  // namespace hadal
