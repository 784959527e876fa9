#include "evaluate/choice_evaluation.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "evaluate/logit_row.h"

namespace hadal {
namespace {

// A question as sequences of ids: the prompt's, and each choice's.
struct EncodedQuestion {
  std::vector<TokenId> prompt;
  std::vector<std::vector<TokenId>> continuations;

  // One run over the prompt answers for all choices.
  bool has_single_tokens() const {
    return std::ranges::all_of(continuations, [](const auto& ids) { return ids.size() == 1; });
  }
  size_t longest() const {
    size_t size = 0;
    for (const auto& ids : continuations) size = std::max(size, ids.size());
    return prompt.size() + size;
  }
};

class Encoder {
 public:
  Encoder(const Tokenizer& tokenizer, std::vector<ChoiceQuestion> shots, ChoiceStyle style)
      : tokenizer_(tokenizer), shots_(std::move(shots)), style_(style) {}

  // The continuation is what the whole text has behind the prompt's own ids. Where a word spans the
  // border, the ids that the two encodings share are the prompt.
  EncodedQuestion Encode(const ChoiceQuestion& question) const {
    const std::string prompt = ChoicePrompt(shots_, question, style_);
    std::vector<std::vector<TokenId>> whole;
    size_t num_shared = SIZE_MAX;
    const std::vector<TokenId> alone = EncodeText(prompt);
    for (size_t i = 0; i < question.choices.size(); ++i) {
      whole.push_back(EncodeText(prompt + ChoiceContinuation(question, i, style_)));
      const auto differs = std::ranges::mismatch(alone, whole.back()).in1;
      num_shared = std::min(num_shared, static_cast<size_t>(differs - alone.begin()));
      num_shared = std::min(num_shared, whole.back().size() - 1);
    }
    EncodedQuestion encoded;
    encoded.prompt.assign(alone.begin(), alone.begin() + static_cast<std::ptrdiff_t>(num_shared));
    for (const std::vector<TokenId>& ids : whole) {
      encoded.continuations.emplace_back(ids.begin() + static_cast<std::ptrdiff_t>(num_shared),
                                         ids.end());
    }
    return encoded;
  }

 private:
  std::vector<TokenId> EncodeText(const std::string& text) const {
    std::vector<TokenId> ids = tokenizer_.Encode(text);
    if (tokenizer_.bos()) ids.insert(ids.begin(), *tokenizer_.bos());
    return ids;
  }

  const Tokenizer& tokenizer_;
  std::vector<ChoiceQuestion> shots_;
  ChoiceStyle style_;
};

// Log-likelihood of each continuation.
Result<std::vector<double>> ScoreChoices(const EncodedQuestion& question, LogitsRunner* runner) {
  std::vector<double> scores(question.continuations.size(), 0.0);
  const size_t num_runs = question.has_single_tokens() ? 1 : scores.size();
  for (size_t run = 0; run < num_runs; ++run) {
    std::vector<TokenId> ids = question.prompt;
    const std::vector<TokenId>& continuation = question.continuations[run];
    ids.insert(ids.end(), continuation.begin(), continuation.end() - 1);
    // Row i foretells token i + 1, so the last row of the prompt is the first that counts.
    const size_t first_row = question.prompt.size() - 1;
    RETURN_IF_ERROR(runner->Run(ids, [&](const LogitsChunk& chunk) {
      if (chunk.kind != LogitsKind::kMain) return Status::Ok();
      const auto vocab_size = static_cast<size_t>(chunk.vocab_size);
      for (size_t i = 0; i < static_cast<size_t>(chunk.num_rows); ++i) {
        const size_t row = static_cast<size_t>(chunk.first_row) + i;
        if (row < first_row) continue;
        const std::span<const float> logits(chunk.data + i * vocab_size, vocab_size);
        if (num_runs > 1) {
          scores[run] -= NegativeLogLikelihood(logits, continuation[row - first_row].value);
          continue;
        }
        for (size_t choice = 0; choice < scores.size(); ++choice) {
          scores[choice] = -NegativeLogLikelihood(logits, question.continuations[choice][0].value);
        }
      }
      return Status::Ok();
    }));
  }
  return scores;
}

int BestOf(const std::vector<double>& scores) {
  return static_cast<int>(std::ranges::max_element(scores) - scores.begin());
}

}  // namespace

Result<ChoiceScores> EvaluateChoices(const RunnerOptions& model, const Tokenizer& tokenizer,
                                     const std::vector<ChoiceQuestion>& questions,
                                     const ChoiceOptions& options,
                                     const std::function<void(int64_t done)>& progress) {
  const auto num_shots = static_cast<std::ptrdiff_t>(options.num_shots);
  if (num_shots >= static_cast<std::ptrdiff_t>(questions.size())) {
    return Status::InvalidArgument(
        fmt::format("questions: expected more than the {} worked examples, found {}",
                    options.num_shots, questions.size()));
  }
  const Encoder encoder(tokenizer, {questions.begin(), questions.begin() + num_shots},
                        options.style);
  std::vector<EncodedQuestion> encoded;
  size_t longest = 0;
  for (auto question = questions.begin() + num_shots; question != questions.end(); ++question) {
    encoded.push_back(encoder.Encode(*question));
    longest = std::max(longest, encoded.back().longest());
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<LogitsRunner> runner,
                   LogitsRunner::Create(model, static_cast<int>(longest)));
  ChoiceScores scores;
  for (size_t i = 0; i < encoded.size(); ++i) {
    const ChoiceQuestion& question = questions[static_cast<size_t>(num_shots) + i];
    Result<std::vector<double>> likelihoods = ScoreChoices(encoded[i], runner.get());
    if (!likelihoods.ok()) {
      return likelihoods.status().Annotate(fmt::format("question {}", i + 1));
    }
    const double hit = BestOf(*likelihoods) == question.answer ? 1.0 : 0.0;
    scores.accuracy.Add(hit);
    if (!question.subject.empty()) scores.by_subject[question.subject].Add(hit);
    for (size_t choice = 0; choice < question.choices.size(); ++choice) {
      (*likelihoods)[choice] /=
          static_cast<double>(ChoiceContinuation(question, choice, options.style).size());
    }
    scores.accuracy_per_byte.Add(BestOf(*likelihoods) == question.answer ? 1.0 : 0.0);
    if (progress) progress(static_cast<int64_t>(i) + 1);
  }
  return scores;
}

}  // namespace hadal
