// Perplexity of a model on windows of text, and how far it is from another model on the same.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "evaluate/mean_estimate.h"
#include "evaluate/text_windows.h"
#include "runner/logits_runner.h"

namespace hadal {

// What is measured of one token that is foretold; the first token of a window is not.
struct TextScores {
  MeanEstimate nll;  // negative log-likelihood, nats
  // How often the MTP module's best token, two ahead, is the one that the model itself puts first.
  MeanEstimate mtp_agreement;
  bool has_mtp = false;
  // Against the other model, where there is one:
  MeanEstimate other_nll;
  MeanEstimate kl;              // of this model from the other
  MeanEstimate top1_agreement;  // how often both have the same best token

  double perplexity() const;
  double perplexity_error() const;  // to first order: perplexity times the error of nll
};

struct TextEvaluation {
  RunnerOptions model;
  std::optional<RunnerOptions> against;  // runs beside the model, or
  std::string stored_against;            // the path of stored logits; both empty: no comparison
  std::string store_path;                // where the model's logits are stored; empty: nowhere
};

// Called with the tokens done.
using TokenProgress = std::function<void(int64_t tokens)>;

// Each window is a sequence of its own. kInvalidArgument: a window longer than the context, an id
// outside the vocabulary, vocabularies of different sizes. kCorrupt: the file of stored logits.
Result<TextScores> EvaluateText(const TextEvaluation& evaluation,
                                const std::vector<TokenWindow>& windows,
                                const TokenProgress& progress);

}  // namespace hadal
