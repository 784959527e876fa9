// How often a model finds the right one of several answers.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "evaluate/choice_question.h"
#include "evaluate/mean_estimate.h"
#include "runner/logits_runner.h"
#include "text/tokenizer.h"

namespace hadal {

struct ChoiceOptions {
  ChoiceStyle style = ChoiceStyle::kLetter;
  int num_shots = 0;  // the first questions serve as worked examples and are not asked
};

struct ChoiceScores {
  MeanEstimate accuracy;
  // Of kText: by log-likelihood per byte of the choice, which does not favour short ones.
  MeanEstimate accuracy_per_byte;
  std::map<std::string, MeanEstimate> by_subject;  // accuracy; empty when the file has no subjects
};

// A choice scores the log-likelihood of its continuation behind the prompt, which begins with the
// tokenizer's begin token where it has one; the best is the answer, of equals the first.
// kInvalidArgument: too few questions for the shots, or a question longer than the context.
Result<ChoiceScores> EvaluateChoices(const RunnerOptions& model, const Tokenizer& tokenizer,
                                     const std::vector<ChoiceQuestion>& questions,
                                     const ChoiceOptions& options,
                                     const std::function<void(int64_t done)>& progress);

}  // namespace hadal
