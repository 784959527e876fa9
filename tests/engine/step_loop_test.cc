#include "engine/step_loop.h"

#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/engine_harness.h"
#include "tests/support/alloc_guard.h"
#include "tests/support/fake_runner.h"

namespace hadal {
namespace {

// Passes on to a fake runner and counts what that allocates: the runner's business, not the loop's.
class CountingRunner : public ModelRunner {
 public:
  explicit CountingRunner(const FakeRunnerOptions& options) : fake(options) {}
  const ModelInfo& info() const override { return fake.info(); }
  void SetTokenLimit(int num_tokens) override { fake.SetTokenLimit(num_tokens); }
  Status Execute(const BatchPlan& plan, StepResult* result) override {
    const AllocGuard guard;
    Status status = fake.Execute(plan, result);
    num_allocations += guard.count();
    return status;
  }

  FakeRunner fake;
  int64_t num_allocations = 0;
};

Submission Submit(int64_t id, const Tokenizer* tokenizer,
                  const std::shared_ptr<ResponseStream>& stream) {
  Submission submission;
  submission.request.id = {id};
  submission.request.prompt = FakePrompt(9, static_cast<uint64_t>(id));
  submission.request.max_tokens = 150;
  submission.output = std::make_unique<OutputSequence>();
  submission.output->id = {id};
  submission.output->stream = stream;
  submission.output->decoder.emplace(tokenizer);
  submission.output->stops = StopMatcher({"no such text", "nor this"});
  return submission;
}

// After warm-up a step takes no memory: neither schedule nor update nor emit, the reader included.
TEST(StepLoop, AllocatesNothingPerDecodeStep) {
  const std::unique_ptr<Tokenizer> tokenizer = TinyTokenizer();
  CountingRunner runner({.vocab_size = 4096, .max_context_tokens = 200, .num_cache_blocks = 400});
  // Ordinary words: a token of more than 15 bytes does not fit into a short string.
  const std::vector<TokenId> words = tokenizer->Encode("the cat sat on the mat and was glad ");
  runner.fake.choose = [&words](const FakePrefix& prefix) {
    return words[prefix.tokens.size() % words.size()];
  };
  Metrics metrics;
  StepLoop loop({.max_context_tokens = 200}, {.num_blocks = 400, .block_tokens = 4}, &runner,
                &metrics, &SteadyClockUs);
  std::vector<std::shared_ptr<ResponseStream>> streams;
  for (int64_t id = 0; id < 4; ++id) {
    ResponseHead head;
    head.sequences = {{id}};
    streams.push_back(std::make_shared<ResponseStream>(head, 1 << 20));
    std::vector<Submission> submissions;
    submissions.push_back(Submit(id, tokenizer.get(), streams.back()));
    loop.inbox()->Submit(std::move(submissions));
  }
  std::vector<ResponseChunk> chunks(4);
  const auto step = [&] {
    ASSERT_TRUE(loop.Step());
    for (size_t i = 0; i < 4; ++i) ASSERT_TRUE(streams[i]->Next(&chunks[i]));
  };
  for (int i = 0; i < 10; ++i) step();
  runner.num_allocations = 0;
  const AllocGuard guard;
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(guard.count() - runner.num_allocations, 0);
  EXPECT_GT(runner.num_allocations, 0) << "the guard counts";
}

// C108: a client that leaves while its step is planned is neither in the inbox's last delivery nor
// in a running step.
TEST(StepLoop, BreaksOffAStepWhoseClientLeftWhileItWasPlanned) {
  const std::unique_ptr<Tokenizer> tokenizer = TinyTokenizer();
  FakeRunner runner({.vocab_size = 4096});
  runner.holds = [](const BatchPlan&) { return true; };  // only an interruption ends a step
  Metrics metrics;
  StepLoop* at = nullptr;
  bool leaves = true;
  const auto clock = [&] {  // the loop asks for the time between taking in and planning
    if (std::exchange(leaves, false)) at->Cancel({{7}});
    return SteadyClockUs();
  };
  StepLoop loop({.max_context_tokens = 200}, {.num_blocks = 64, .block_tokens = 4}, &runner,
                &metrics, clock);
  at = &loop;
  ResponseHead head;
  head.sequences = {{7}};
  const auto stream = std::make_shared<ResponseStream>(head, 1 << 20);
  std::vector<Submission> submissions;
  submissions.push_back(Submit(7, tokenizer.get(), stream));
  loop.inbox()->Submit(std::move(submissions));
  EXPECT_TRUE(loop.Step());
  EXPECT_FALSE(leaves);
  EXPECT_EQ(runner.num_steps(), 0);
  EXPECT_FALSE(loop.Step());
  ResponseCollector collector(1);
  collector.ReadAll(stream.get());
  EXPECT_EQ(collector.choices()[0].end.finish, FinishReason::kCancelled);
}

TEST(StepLoop, HasNothingToDoWithoutRequests) {
  CountingRunner runner({});
  Metrics metrics;
  StepLoop loop({.max_context_tokens = 64}, {.num_blocks = 16, .block_tokens = 4}, &runner,
                &metrics, &SteadyClockUs);
  EXPECT_FALSE(loop.Step());
  loop.inbox()->Cancel({{5}});
  EXPECT_FALSE(loop.Step());
}

}  // namespace
}  // namespace hadal
