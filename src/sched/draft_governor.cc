#include "sched/draft_governor.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace hadal {
namespace {

// How far a measurement moves an estimate: half the way, but by no more than a share of the
// estimate. So it comes to stand near the median, and a machine that is busy elsewhere for a
// moment, or now and then, does not decide.
constexpr double kTimeWeight = 0.5;
constexpr double kMaxMove = 0.08;

// What one outcome counts against earlier ones, of the sequence and of all.
constexpr float kSequenceWeight = 0.06f;
constexpr float kDrafterWeight = 0.02f;

// What a guess is taken to be worth before any was seen, and a row before its cost was: hopeful, so
// that both get measured.
constexpr float kFirstAcceptance = 0.7f;
constexpr double kFirstRowShare = 0.1;  // of the time of a row alone

// Guesses must raise the tokens per second by this much: estimates are noisy, and what is gained by
// less is not worth the risk.
constexpr double kMinGain = 1.02;

// Where no guess pays, one is tried after so many steps, to see whether the text has changed.
constexpr int kFirstProbe = 24;
constexpr int kLastProbe = 1024;

double Blend(double old, double measured) {
  return old + kTimeWeight * std::clamp(measured - old, -kMaxMove * old, kMaxMove * old);
}

}  // namespace

DraftGovernor::DraftGovernor() {
  for (DrafterRecord& drafter : drafters_) drafter.acceptance.fill(kFirstAcceptance);
}

// Small steps have an entry each, larger ones share one with their like.
int DraftGovernor::TimeIndex(int num_rows) {
  if (num_rows <= kNumExactRows) return num_rows;
  const double octaves = std::log2(static_cast<double>(num_rows) / kNumExactRows);
  return std::min(kNumTimes, kNumExactRows + static_cast<int>(octaves * kStepsPerOctave));
}

double DraftGovernor::RowsAt(int index) {
  if (index <= kNumExactRows) return index;
  return kNumExactRows * std::exp2(static_cast<double>(index - kNumExactRows) / kStepsPerOctave);
}

void DraftGovernor::NoteStepTime(int num_rows, int64_t elapsed_us) {
  HADAL_CHECK(num_rows > 0);
  RowTime& time = times_[static_cast<size_t>(TimeIndex(num_rows))];
  const double us = std::max<double>(1, static_cast<double>(elapsed_us));
  time.us = time.is_known ? Blend(time.us, us) : us;
  time.is_known = true;
}

void DraftGovernor::NoteDrafting(DrafterKind drafter, int num_drafts, int64_t elapsed_us) {
  if (num_drafts <= 0) return;
  DrafterRecord& record = of(drafter);
  const double us = std::max(0.1, static_cast<double>(elapsed_us) / num_drafts);
  record.draft_us = record.has_draft_us ? Blend(record.draft_us, us) : us;
  record.has_draft_us = true;
}

void DraftGovernor::NoteOutcome(DrafterKind drafter, int num_drafts, int num_accepted,
                                DraftRecord* record) {
  DrafterRecord& all = of(drafter);
  if (!record->has_acceptance) record->acceptance = all.acceptance;
  record->has_acceptance = true;
  // The first one that was wrong was looked at, those behind it were not.
  for (int i = 0; i < std::min(num_drafts, num_accepted + 1); ++i) {
    const float outcome = i < num_accepted ? 1.0f : 0.0f;
    const auto at = static_cast<size_t>(i);
    record->acceptance[at] += kSequenceWeight * (outcome - record->acceptance[at]);
    all.acceptance[at] += kDrafterWeight * (outcome - all.acceptance[at]);
  }
  if (num_accepted > 0) record->probe_interval = kFirstProbe;
}

// Between two entries that are known the time is linear, beyond the last one it goes on as before
// it. More rows never take less time.
double DraftGovernor::StepUs(int num_rows) const {
  const int index = TimeIndex(num_rows);
  int below = index, above = index;
  while (below > 0 && !times_[static_cast<size_t>(below)].is_known) --below;
  while (above <= kNumTimes && !times_[static_cast<size_t>(above)].is_known) ++above;
  const bool has_below = below > 0, has_above = above <= kNumTimes;
  if (!has_below && !has_above) return 0;
  const double rows = num_rows;
  if (!has_below) return times_[static_cast<size_t>(above)].us;
  const double below_us = times_[static_cast<size_t>(below)].us, below_rows = RowsAt(below);
  if (below == above) return below_us;
  if (has_above) {
    const double above_us = std::max(below_us, times_[static_cast<size_t>(above)].us);
    return below_us + (above_us - below_us) * (rows - below_rows) / (RowsAt(above) - below_rows);
  }
  int before = below - 1;
  while (before > 0 && !times_[static_cast<size_t>(before)].is_known) --before;
  double slope = kFirstRowShare * below_us / below_rows;
  if (before > 0) {
    const double rise = below_us - times_[static_cast<size_t>(before)].us;
    slope = std::clamp(rise / (below_rows - RowsAt(before)), 0.0, below_us / below_rows);
  }
  return below_us + slope * (rows - below_rows);
}

void DraftGovernor::AddCandidates(const DraftSeat& seat, int seat_idx) {
  const DrafterRecord& all = of(seat.speculation.drafter);
  const auto& acceptance = seat.record->has_acceptance ? seat.record->acceptance : all.acceptance;
  double gain = 1;
  for (int i = 0; i < seat.max_drafts; ++i) {
    gain *= acceptance[static_cast<size_t>(i)];
    candidates_.push_back({gain, all.draft_us, seat_idx});
  }
}

// A sequence whose guesses do not pay makes one now and then.
void DraftGovernor::Probe(DraftSeat* seat) {
  DraftRecord& record = *seat->record;
  if (record.probe_interval == 0) record.probe_interval = kFirstProbe;
  if (seat->num_wanted > 0) {
    record.num_idle_steps = 0;
  } else if (seat->max_drafts > 0 && ++record.num_idle_steps >= record.probe_interval) {
    record.num_idle_steps = 0;
    record.probe_interval = std::min(kLastProbe, 2 * record.probe_interval);
    seat->num_wanted = 1;
  }
}

void DraftGovernor::Choose(int num_rows, std::span<DraftSeat> seats) {
  candidates_.clear();
  for (size_t i = 0; i < seats.size(); ++i) {
    DraftSeat& seat = seats[i];
    seat.num_wanted = seat.speculation.is_adaptive ? 0 : seat.max_drafts;
    if (seat.speculation.is_adaptive) {
      AddCandidates(seat, static_cast<int>(i));
    } else {
      num_rows += seat.num_wanted;
    }
  }
  if (candidates_.empty() || num_rows <= 0) return;
  // Within a seat gains only fall, so its first guesses come before its later ones.
  std::ranges::stable_sort(candidates_, std::greater(),
                           [](const Candidate& candidate) { return candidate.gain; });
  double tokens = num_rows, drafting_us = 0;
  double best_rate = kMinGain * tokens / std::max(1.0, StepUs(num_rows));
  size_t num_taken = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    tokens += candidates_[i].gain;
    drafting_us += candidates_[i].cost_us;
    const double us = StepUs(num_rows + static_cast<int>(i) + 1) + drafting_us;
    const double rate = tokens / std::max(1.0, us);
    if (rate <= best_rate) continue;
    best_rate = rate;
    num_taken = i + 1;
  }
  for (size_t i = 0; i < num_taken; ++i)
    ++seats[static_cast<size_t>(candidates_[i].seat)].num_wanted;
  for (DraftSeat& seat : seats) {
    if (seat.speculation.is_adaptive) Probe(&seat);
  }
}

}  // namespace hadal
