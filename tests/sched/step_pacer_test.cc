#include "sched/step_pacer.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace hadal {
namespace {

constexpr int64_t kTargetUs = 100'000;

// A machine on which a step costs so much: weights are read once, then every token adds its share.
struct Machine {
  double decode_us = 20'000, read_us = 15'000, token_us = 400;
  int64_t StepUs(const StepLoad& load) const {
    double us = load.num_decoding > 0 ? decode_us : 0;
    // Few tokens touch few experts, so that less is read.
    if (load.prompt_work > 0)
      us += read_us * (1 - std::exp(-load.prompt_work / 20)) + token_us * load.prompt_work;
    return static_cast<int64_t>(us);
  }
};

// Steps in which eight decode while a prompt is read; returns their times.
std::vector<int64_t> ReadBesideStreams(StepPacer* pacer, const Machine& machine, int num_steps) {
  std::vector<int64_t> times;
  for (int i = 0; i < num_steps; ++i) {
    const StepLoad load{8, std::floor(pacer->MaxPromptWork(8))};
    times.push_back(machine.StepUs(load));
    pacer->Note(load, times.back());
  }
  return times;
}

void DecodeOnly(StepPacer* pacer, const Machine& machine, int num_steps) {
  for (int i = 0; i < num_steps; ++i) pacer->Note({8, 0}, machine.StepUs({8, 0}));
}

TEST(StepPacer, HasNoLimitWithoutATarget) {
  StepPacer pacer({});
  pacer.Note({3, 100}, 5'000'000);
  EXPECT_EQ(pacer.MaxPromptWork(3), StepPacer::kNoLimit);
  EXPECT_EQ(pacer.MaxPromptWork(0), StepPacer::kNoLimit);
}

TEST(StepPacer, FindsTheChunkThatFillsTheTarget) {
  StepPacer pacer({.max_step_us = kTargetUs});
  const Machine machine;
  DecodeOnly(&pacer, machine, 3);
  const std::vector<int64_t> times = ReadBesideStreams(&pacer, machine, 20);
  for (const int64_t us : times) EXPECT_LE(us, kTargetUs * 5 / 4);
  EXPECT_GE(times.back(), kTargetUs * 3 / 4) << "the target is used";
  EXPECT_NEAR(pacer.MaxPromptWork(8), 65'000 / 400.0, 20);
}

// What the issue of long prompts asks for: no gap above twice the target, from the first step on.
TEST(StepPacer, StaysWithinTwiceTheTargetOnAnyMachine) {
  for (const double token_us : {5.0, 100.0, 800.0, 2'000.0}) {
    StepPacer pacer({.max_step_us = kTargetUs});
    Machine machine;
    machine.token_us = token_us;
    DecodeOnly(&pacer, machine, 3);
    for (const int64_t us : ReadBesideStreams(&pacer, machine, 60)) {
      EXPECT_LE(us, 2 * kTargetUs) << "at " << token_us << " us per token";
    }
  }
}

TEST(StepPacer, MovesOnHoweverSlowTheMachineIs) {
  StepPacer pacer({.max_step_us = kTargetUs});
  Machine machine;
  machine.decode_us = 3 * kTargetUs;
  DecodeOnly(&pacer, machine, 3);
  ReadBesideStreams(&pacer, machine, 10);
  EXPECT_EQ(pacer.MaxPromptWork(8), StepPacer::kMinWork);
}

TEST(StepPacer, FollowsAMachineThatGetsSlowerAndFasterAgain) {
  StepPacer pacer({.max_step_us = kTargetUs});
  Machine machine;
  DecodeOnly(&pacer, machine, 3);
  ReadBesideStreams(&pacer, machine, 20);
  const double before = pacer.MaxPromptWork(8);
  machine.token_us *= 4;
  EXPECT_LE(ReadBesideStreams(&pacer, machine, 20).back(), kTargetUs * 5 / 4);
  machine.token_us /= 4;
  ReadBesideStreams(&pacer, machine, 20);
  EXPECT_NEAR(pacer.MaxPromptWork(8), before, before / 4);
}

// One step during which the machine did something else.
TEST(StepPacer, ForgetsOneDisturbedStep) {
  StepPacer pacer({.max_step_us = kTargetUs});
  const Machine machine;
  DecodeOnly(&pacer, machine, 3);
  ReadBesideStreams(&pacer, machine, 20);
  const double before = pacer.MaxPromptWork(8);
  pacer.Note({8, before}, 40 * kTargetUs);
  EXPECT_GE(pacer.MaxPromptWork(8), before / 4) << "the door is not closed";
  ReadBesideStreams(&pacer, machine, 15);
  EXPECT_NEAR(pacer.MaxPromptWork(8), before, before / 4);
}

TEST(StepPacer, StaysNearTheTargetWhenStepTimesAreNoisy) {
  std::mt19937 random(7);
  StepPacer pacer({.max_step_us = kTargetUs});
  const Machine machine;
  DecodeOnly(&pacer, machine, 3);
  std::vector<int64_t> times;
  for (int i = 0; i < 200; ++i) {
    const StepLoad load{8, std::floor(pacer.MaxPromptWork(8))};
    const double noise = 0.8 + 0.4 * static_cast<double>(random() % 1000) / 1000;
    times.push_back(static_cast<int64_t>(noise * static_cast<double>(machine.StepUs(load))));
    pacer.Note(load, times.back());
  }
  std::ranges::sort(times);
  EXPECT_LE(times.back(), 2 * kTargetUs);
  EXPECT_GE(times[100], kTargetUs / 2);
}

TEST(StepPacer, HasItsOwnTargetWhereNobodyDecodes) {
  StepPacer pacer({.max_step_us = kTargetUs, .max_prompt_step_us = 4 * kTargetUs});
  const Machine machine;
  for (int i = 0; i < 20; ++i) {
    const StepLoad load{0, std::floor(pacer.MaxPromptWork(0))};
    pacer.Note(load, machine.StepUs(load));
  }
  const StepLoad load{0, pacer.MaxPromptWork(0)};
  EXPECT_NEAR(static_cast<double>(machine.StepUs(load)), 4 * kTargetUs, kTargetUs);
}

TEST(StepPacer, CountsATokenDeepInItsContextAsMore) {
  EXPECT_DOUBLE_EQ(PromptWork(0, 1), 1 + 0.5 / 4096);
  EXPECT_DOUBLE_EQ(PromptWork(4096, 100), 100 * (2 + 50.0 / 4096));
  // Work does not depend on the chunks.
  EXPECT_NEAR(PromptWork(100, 50) + PromptWork(150, 70), PromptWork(100, 120), 1e-9);
  for (const int position : {0, 5, 1000, 100'000}) {
    for (const int num_tokens : {1, 16, 512, 4000})
      EXPECT_EQ(PromptTokens(position, PromptWork(position, num_tokens)), num_tokens);
  }
  EXPECT_GE(PromptTokens(0, StepPacer::kNoLimit), 1 << 20);
}

}  // namespace
}  // namespace hadal
