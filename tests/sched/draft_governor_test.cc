#include "sched/draft_governor.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace hadal {
namespace {

// A machine and texts with set properties.
struct World {
  double step_us = 1000;                   // of one row
  double row_us = 100;                     // of each further row
  double draft_us = 10;                    // of making a guess
  double spikes = 0;                       // share of steps that take five times as long
  double noise = 0;                        // relative, of a step's time
  std::vector<double> acceptance = {0.8};  // one sequence each
  int max_drafts = 8;
};

struct Outcome {
  double tokens = 0, us = 0;
  std::vector<int64_t> num_drafts;  // by sequence
  double rate() const { return tokens / us; }
};

// Runs steps of all sequences; fixed_depth -1: as the governor says.
Outcome Simulate(const World& world, int fixed_depth, int num_steps) {
  DraftGovernor governor;
  const size_t size = world.acceptance.size();
  std::vector<DraftRecord> records(size);
  std::vector<int> depths(size, 0);
  Outcome outcome{.num_drafts = std::vector<int64_t>(size)};
  uint64_t draw = 0;
  for (int step = 0; step < num_steps; ++step) {
    std::vector<DraftSeat> seats;
    for (DraftRecord& record : records) {
      seats.push_back({.record = &record,
                       .speculation = {.drafter = DrafterKind::kMtp, .max_drafts = 8},
                       .max_drafts = world.max_drafts});
    }
    governor.Choose(static_cast<int>(size), seats);
    int num_rows = static_cast<int>(size), num_proposals = 0;
    for (const int depth : depths) num_rows += depth;
    for (size_t i = 0; i < size; ++i) {
      int num_accepted = 0;
      while (num_accepted < depths[i] && RandomUnit(3, draw++) < world.acceptance[i])
        ++num_accepted;
      outcome.tokens += 1 + num_accepted;
      outcome.num_drafts[i] += depths[i];
      if (depths[i] > 0)
        governor.NoteOutcome(DrafterKind::kMtp, depths[i], num_accepted, &records[i]);
      depths[i] = fixed_depth >= 0 ? fixed_depth : seats[i].num_wanted;
      num_proposals += depths[i];
    }
    const double factor = 1 + world.noise * (2 * RandomUnit(4, draw++) - 1);
    const double spike = RandomUnit(5, draw) < world.spikes ? 5 : 1;
    const double step_us = spike * (world.step_us + world.row_us * (num_rows - 1)) * factor;
    const double drafting_us = world.draft_us * num_proposals;
    governor.NoteStepTime(num_rows, static_cast<int64_t>(step_us));
    governor.NoteDrafting(DrafterKind::kMtp, num_proposals, static_cast<int64_t>(drafting_us));
    outcome.us += step_us + drafting_us;
  }
  return outcome;
}

// Never slower than without guesses by more than 2 %, and not far from the best fixed depth.
TEST(DraftGovernor, IsNeverSlowerThanPlainAndNearTheBestDepth) {
  for (const double row_us : {10.0, 100.0, 300.0, 600.0, 1000.0}) {
    for (const double acceptance : {0.05, 0.3, 0.6, 0.8, 0.95}) {
      for (const double noise : {0.0, 0.05}) {
        const World world{.row_us = row_us, .noise = noise, .acceptance = {acceptance}};
        SCOPED_TRACE("row " + std::to_string(row_us) + " acceptance " + std::to_string(acceptance) +
                     " noise " + std::to_string(noise));
        const double governed = Simulate(world, -1, 6000).rate();
        double best = 0;
        for (int depth = 0; depth <= 8; ++depth)
          best = std::max(best, Simulate(world, depth, 3000).rate());
        EXPECT_GT(governed, 0.98 * Simulate(world, 0, 3000).rate());
        EXPECT_GT(governed, 0.9 * best);
      }
    }
  }
}

// Another program takes the processor now and then. (Spikes of the compared runs differ by chance.)
TEST(DraftGovernor, IsNotLedAstrayByStepsThatWereDisturbed) {
  for (const double row_us : {50.0, 300.0, 900.0}) {
    for (const double acceptance : {0.1, 0.8}) {
      const World world{.row_us = row_us, .spikes = 0.1, .noise = 0.05, .acceptance = {acceptance}};
      SCOPED_TRACE("row " + std::to_string(row_us) + " acceptance " + std::to_string(acceptance));
      const double governed = Simulate(world, -1, 20000).rate();
      EXPECT_GT(governed, 0.95 * Simulate(world, 0, 20000).rate());
    }
  }
}

TEST(DraftGovernor, GivesGuessesToThoseWhoseGuessesHold) {
  const World world{.row_us = 350, .acceptance = {0.95, 0.02, 0.95, 0.02}};
  const Outcome outcome = Simulate(world, -1, 3000);
  EXPECT_GT(outcome.num_drafts[0], 20 * outcome.num_drafts[1]);
  EXPECT_GT(outcome.num_drafts[2], 20 * outcome.num_drafts[3]);
}

TEST(DraftGovernor, TriesAgainNowAndThenWhereNoGuessPays) {
  const World world{.row_us = 1000, .acceptance = {0.3}};
  const Outcome outcome = Simulate(world, -1, 5000);
  EXPECT_GT(outcome.num_drafts[0], 3);
  EXPECT_LT(outcome.num_drafts[0], 100);
}

TEST(DraftGovernor, CountsTheTimeOfMakingGuesses) {
  const World cheap{.row_us = 100, .draft_us = 10}, dear{.row_us = 100, .draft_us = 2000};
  EXPECT_GT(Simulate(cheap, -1, 2000).num_drafts[0], 2000);
  EXPECT_LT(Simulate(dear, -1, 2000).num_drafts[0], 100);
}

TEST(DraftGovernor, LeavesFixedDepthsAlone) {
  DraftGovernor governor;
  DraftRecord record;
  std::vector<DraftSeat> seats = {
      {.record = &record,
       .speculation = {.drafter = DrafterKind::kNgram, .max_drafts = 5, .is_adaptive = false},
       .max_drafts = 5}};
  for (int i = 0; i < 50; ++i) governor.NoteOutcome(DrafterKind::kNgram, 5, 0, &record);
  governor.Choose(1, seats);
  EXPECT_EQ(seats[0].num_wanted, 5);
}

TEST(DraftGovernor, ReadsTimesOfUnseenStepsFromTheirNeighbours) {
  DraftGovernor governor;
  EXPECT_EQ(governor.StepUs(4), 0);
  governor.NoteStepTime(2, 1000);
  governor.NoteStepTime(6, 2000);
  EXPECT_NEAR(governor.StepUs(4), 1500, 1);
  EXPECT_NEAR(governor.StepUs(8), 2500, 1);
  EXPECT_NEAR(governor.StepUs(1), 1000, 1);
}

}  // namespace
}  // namespace hadal
