// The logits of every position of one sequence, for comparing ways of computing and for evaluation.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "base/status.h"
#include "base/types.h"
#include "runner/model_runner.h"

namespace hadal {

enum class LogitsKind { kMain, kMtp };

// Rows [first_row, first_row + num_rows) of a kind, each of vocab_size floats; valid during the
// call.
struct LogitsChunk {
  LogitsKind kind = LogitsKind::kMain;
  int first_row = 0, num_rows = 0, vocab_size = 0;
  const float* data = nullptr;  // without gaps
};

class LogitsRunner {
 public:
  // options.max_step_tokens is the chunk in which the sequence is read; room for `num_tokens` is
  // taken.
  static Result<std::unique_ptr<LogitsRunner>> Create(RunnerOptions options, int num_tokens);
  ~LogitsRunner();

  int vocab_size() const;
  bool has_mtp() const;

  // All tokens count as a prompt. Main rows: one per token. MTP rows: one per token but the last;
  // row i joins the final hidden state of token i with the embedding of token i + 1.
  // kInvalidArgument for an id outside the vocabulary or a sequence longer than the context; an
  // error of `consume` ends the run.
  Status Run(std::span<const TokenId> tokens,
             const std::function<Status(const LogitsChunk&)>& consume);

 private:
  struct State;
  explicit LogitsRunner(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hadal
