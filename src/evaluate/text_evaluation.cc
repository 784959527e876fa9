#include "evaluate/text_evaluation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "evaluate/logit_row.h"
#include "evaluate/stored_logits.h"

namespace hadal {
namespace {

size_t LongestWindow(const std::vector<TokenWindow>& windows) {
  size_t longest = 0;
  for (const TokenWindow& window : windows) longest = std::max(longest, window.size());
  return longest;
}

// The logits of one window, [tokens, vocab_size], and of the MTP module its best tokens.
class WindowLogits {
 public:
  WindowLogits(int vocab_size, size_t max_tokens)
      : vocab_size_(static_cast<size_t>(vocab_size)), rows_(max_tokens * vocab_size_) {}

  Status Compute(LogitsRunner* runner, const TokenWindow& window) {
    mtp_best_.clear();
    return runner->Run(window, [this](const LogitsChunk& chunk) {
      const std::span<const float> data(chunk.data,
                                        static_cast<size_t>(chunk.num_rows) * vocab_size_);
      if (chunk.kind == LogitsKind::kMain) {
        std::ranges::copy(data, rows_.begin() + static_cast<size_t>(chunk.first_row) * vocab_size_);
      } else {
        for (size_t i = 0; i < static_cast<size_t>(chunk.num_rows); ++i) {
          mtp_best_.push_back(BestId(data.subspan(i * vocab_size_, vocab_size_)));
        }
      }
      return Status::Ok();
    });
  }

  std::span<float> rows(size_t count) { return std::span(rows_).first(count * vocab_size_); }
  std::span<const float> row(size_t i) const {
    return std::span(rows_).subspan(i * vocab_size_, vocab_size_);
  }
  // Of the pairs (token i, token i + 1): what is foretold for token i + 2.
  const std::vector<int32_t>& mtp_best() const { return mtp_best_; }

 private:
  size_t vocab_size_;
  std::vector<float> rows_;
  std::vector<int32_t> mtp_best_;
};

void AddWindow(const TokenWindow& window, const WindowLogits& logits, TextScores* scores) {
  for (size_t i = 0; i + 1 < window.size(); ++i) {
    scores->nll.Add(NegativeLogLikelihood(logits.row(i), window[i + 1].value));
  }
  // Pair i and row i + 1 both speak of token i + 2.
  for (size_t i = 0; i < logits.mtp_best().size() && i + 2 < window.size(); ++i) {
    scores->mtp_agreement.Add(logits.mtp_best()[i] == BestId(logits.row(i + 1)) ? 1.0 : 0.0);
  }
}

void CompareWindow(const TokenWindow& window, const WindowLogits& logits, const WindowLogits& other,
                   TextScores* scores) {
  for (size_t i = 0; i + 1 < window.size(); ++i) {
    scores->other_nll.Add(NegativeLogLikelihood(other.row(i), window[i + 1].value));
    scores->kl.Add(KlDivergence(other.row(i), logits.row(i)));
    scores->top1_agreement.Add(BestId(other.row(i)) == BestId(logits.row(i)) ? 1.0 : 0.0);
  }
}

Status CheckVocabularies(const std::string& other, int expected, int found) {
  if (expected == found) return Status::Ok();
  return Status::InvalidArgument(fmt::format(
      "{}: expected a vocabulary of {} like the model's, found {}", other, expected, found));
}

}  // namespace

double TextScores::perplexity() const { return std::exp(nll.mean()); }
double TextScores::perplexity_error() const { return perplexity() * nll.error(); }

Result<TextScores> EvaluateText(const TextEvaluation& evaluation,
                                const std::vector<TokenWindow>& windows,
                                const TokenProgress& progress) {
  const size_t longest = LongestWindow(windows);
  const int max_tokens = static_cast<int>(longest);
  ASSIGN_OR_RETURN(const std::unique_ptr<LogitsRunner> runner,
                   LogitsRunner::Create(evaluation.model, max_tokens));
  const int vocab_size = runner->vocab_size();

  std::unique_ptr<LogitsRunner> other_runner;
  std::optional<StoredLogits> stored;
  if (evaluation.against) {
    ASSIGN_OR_RETURN(other_runner, LogitsRunner::Create(*evaluation.against, max_tokens));
    RETURN_IF_ERROR(
        CheckVocabularies(evaluation.against->model_path, vocab_size, other_runner->vocab_size()));
  } else if (!evaluation.stored_against.empty()) {
    ASSIGN_OR_RETURN(stored, StoredLogits::Open(evaluation.stored_against, windows));
    RETURN_IF_ERROR(CheckVocabularies(evaluation.stored_against, vocab_size, stored->vocab_size()));
  }
  std::optional<StoredLogitsWriter> writer;
  if (!evaluation.store_path.empty()) {
    ASSIGN_OR_RETURN(writer,
                     StoredLogitsWriter::Create(evaluation.store_path, windows, vocab_size));
  }

  const bool is_compared = other_runner != nullptr || stored.has_value();
  WindowLogits logits(vocab_size, longest), other(vocab_size, is_compared ? longest : 0);
  TextScores scores;
  scores.has_mtp = runner->has_mtp();
  int64_t done = 0;
  for (const TokenWindow& window : windows) {
    RETURN_IF_ERROR(logits.Compute(runner.get(), window));
    if (writer) RETURN_IF_ERROR(writer->Add(logits.rows(window.size())));
    AddWindow(window, logits, &scores);
    if (other_runner) RETURN_IF_ERROR(other.Compute(other_runner.get(), window));
    if (stored) stored->ReadNext(other.rows(window.size()));
    if (is_compared) CompareWindow(window, logits, other, &scores);
    done += static_cast<int64_t>(window.size());
    if (progress) progress(done);
  }
  if (writer) RETURN_IF_ERROR(writer->Finish());
  return scores;
}

}  // namespace hadal
