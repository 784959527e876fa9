// hadal bench --spec: what verifying guesses costs here, what speed follows from it, and how often
// a model's own guesses are right.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "runner/model_runner.h"

namespace hadal {

struct SpeculationBenchOptions {
  RunnerOptions runner;
  int depth = 0;         // tokens before those that are measured
  int repetitions = 10;  // rounds, in each of which everything is measured once
  // JSON list of texts, or one plain text, on which the MTP module's guesses are counted; empty:
  // they are not.
  std::string text_path;
};

// One step of one sequence.
struct VerificationCost {
  int num_tokens = 1;  // the certain one and the guesses behind it
  double median_s = 0;
  double relative = 1;  // to one token
};

inline constexpr int kMostVerified = 8;  // tokens, in one step

// A text is generated again by a drafter that knows it and errs at a set rate.
struct CopyRun {
  int num_drafts = 0;
  double right_rate = 0;
  double tokens_per_step = 0;
  double speedup = 0;  // measured, over plain decoding of the same text
  // From the steps that were taken and what verifying costs: of num_drafts + 1 tokens as measured
  // in turn with the text, of fewer at its end as in VerificationCost.
  double predicted = 0;
  double relative_cost = 0;                       // of num_drafts + 1 tokens, to one
  std::array<int, kMostVerified> num_steps_of{};  // by the tokens that they verified, from one on
};

// Guesses of the MTP module while texts are continued greedily.
struct ModuleAcceptance {
  int num_drafts = 0;               // per step
  std::vector<double> by_position;  // share of steps in which this guess and all before it held
  double tokens_per_step = 0;
};

struct SpeculationReport {
  std::vector<VerificationCost> costs;  // of 1 to 8 tokens
  std::vector<CopyRun> copies;
  std::vector<ModuleAcceptance> acceptance;
};

// Tokens per step when each of `num_drafts` guesses holds with probability `acceptance` given those
// before it: 1 + a + a^2 + ...
double TokensPerStep(int num_drafts, double acceptance);

// Errors as CreateRunner and of the text; kInternal when guessing changed a text.
Result<SpeculationReport> MeasureSpeculation(const SpeculationBenchOptions& options);

Json SpeculationAsJson(const SpeculationReport& report);
std::string SpeculationAsText(const SpeculationReport& report);

}  // namespace hadal
