// Questions with several answers, as the benchmarks of the field store them: one JSON object a
// line,
// {"question": text, "choices": [text, ...], "answer": number or letter, "subject": text?}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hadal {

struct ChoiceQuestion {
  std::string question, subject;     // subject: empty where the file has none
  std::vector<std::string> choices;  // 2 to 26
  int answer = 0;                    // into choices
};

// kCorrupt names file, line and key.
Result<std::vector<ChoiceQuestion>> ParseChoiceQuestions(std::string_view lines,
                                                         const std::string& what);

// How an answer is asked for.
enum class ChoiceStyle {
  kLetter,  // the choices stand in the prompt behind letters; the answer is a letter (MMLU)
  kText,    // the prompt holds the question only; the answer is the text of a choice
};

// The prompt of a question, with `shots` before it as worked examples; it ends in "Answer:".
std::string ChoicePrompt(const std::vector<ChoiceQuestion>& shots, const ChoiceQuestion& question,
                         ChoiceStyle style);

// What follows the prompt when choice i is the answer: " A", or " " and its text.
std::string ChoiceContinuation(const ChoiceQuestion& question, size_t i, ChoiceStyle style);

}  // namespace hadal
