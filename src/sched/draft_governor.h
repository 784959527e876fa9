// How many guesses each sequence makes for its next step: those that bring more tokens than their
// time would bring otherwise. Learns from the times of steps and from what became of the guesses;
// decides nothing else. Engine thread only. docs/speculation.md.
//
// A guess brings a token when it and all guesses before it are accepted: the j-th one brings
// a_1 * ... * a_j tokens, with a_j measured per sequence. It costs a row to verify, by a table of
// measured times of steps over their rows (the union of experts, bytes and arithmetic are all in
// it), and the time of making it, which is measured too. Of all guesses of all sequences the best
// are taken as long as they raise the tokens per second of the whole step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "batch/speculation.h"

namespace hadal {

// What is known of one sequence's guesses.
struct DraftRecord {
  std::array<float, kMostDrafts> acceptance{};  // of each position, given those before it
  bool has_acceptance = false;                  // else the drafter's own record counts
  int num_idle_steps = 0;                       // since the last guess was asked for
  int probe_interval = 0;                       // idle steps until one guess is tried all the same
};

// One sequence that takes part in the next step.
struct DraftSeat {
  DraftRecord* record = nullptr;
  Speculation speculation;
  int max_drafts = 0;  // that could be of use to it
  int num_wanted = 0;  // what Choose() decides
};

class DraftGovernor {
 public:
  DraftGovernor();

  // Sets num_wanted of each seat. `num_rows`: rows of the step without any guess, those of
  // sequences without a seat included.
  void Choose(int num_rows, std::span<DraftSeat> seats);

  // A step took `elapsed_us`, without its guessing, for `num_rows` rows of sequences that decode.
  void NoteStepTime(int num_rows, int64_t elapsed_us);
  // Making `num_drafts` guesses took so long.
  void NoteDrafting(DrafterKind drafter, int num_drafts, int64_t elapsed_us);
  // Of `num_drafts` guesses the first `num_accepted` were accepted.
  void NoteOutcome(DrafterKind drafter, int num_drafts, int num_accepted, DraftRecord* record);

  // The estimate of a step's time; 0 while nothing was measured.
  double StepUs(int num_rows) const;
  double DraftUs(DrafterKind drafter) const { return of(drafter).draft_us; }

 private:
  struct DrafterRecord {
    std::array<float, kMostDrafts> acceptance{};
    double draft_us = 0;
    bool has_draft_us = false;
  };
  struct Candidate {
    double gain = 0, cost_us = 0;
    int seat = 0;
  };
  struct RowTime {
    double us = 0;
    bool is_known = false;
  };

  static constexpr int kNumExactRows = 64;
  static constexpr int kStepsPerOctave = 8;
  static constexpr int kNumTimes = kNumExactRows + 8 * kStepsPerOctave;
  static int TimeIndex(int num_rows);
  static double RowsAt(int index);

  const DrafterRecord& of(DrafterKind kind) const { return drafters_[static_cast<size_t>(kind)]; }
  DrafterRecord& of(DrafterKind kind) { return drafters_[static_cast<size_t>(kind)]; }
  void AddCandidates(const DraftSeat& seat, int seat_idx);
  static void Probe(DraftSeat* seat);

  std::array<DrafterRecord, kNumDrafterKinds> drafters_{};
  std::array<RowTime, kNumTimes + 1> times_{};
  std::vector<Candidate> candidates_;  // scratch
};

}  // namespace hadal
