#include "evaluate/choice_question.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json.h"
#include "base/quote.h"

namespace hadal {
namespace {

constexpr size_t kMaxChoices = 26;

Status ReadChoices(const Json& line, const std::string& what, ChoiceQuestion* question) {
  const Json list = HasValue(line, "choices") ? line["choices"] : Json();
  if (!list.is_array() || list.size() < 2 || list.size() > kMaxChoices) {
    return Status::Corrupt(fmt::format("{}: choices: expected a list of 2 to {} texts, found {}",
                                       what, kMaxChoices, Quoted(DumpJson(list), 60)));
  }
  for (const Json& choice : list) {
    if (!choice.is_string()) {
      return Status::Corrupt(fmt::format("{}: choices[{}]: expected a text, found {}", what,
                                         question->choices.size(), choice.type_name()));
    }
    question->choices.push_back(choice.get<std::string>());
  }
  return Status::Ok();
}

// A number counts from 0, a letter from A.
Status ReadAnswer(const Json& line, const std::string& what, ChoiceQuestion* question) {
  const auto num_choices = static_cast<int64_t>(question->choices.size());
  const Json answer = HasValue(line, "answer") ? line["answer"] : Json();
  int64_t idx = -1;
  if (answer.is_number_integer()) {
    idx = answer.is_number_unsigned() && answer > INT32_MAX ? -1 : answer.get<int64_t>();
  } else if (answer.is_string() && answer.get_ref<const std::string&>().size() == 1) {
    idx = answer.get_ref<const std::string&>()[0] - 'A';
  }
  if (idx < 0 || idx >= num_choices) {
    return Status::Corrupt(fmt::format(
        "{}: answer: expected a number from 0 to {} or a letter from A to {}, found {}", what,
        num_choices - 1, static_cast<char>('A' + num_choices - 1), Quoted(DumpJson(answer), 40)));
  }
  question->answer = static_cast<int>(idx);
  return Status::Ok();
}

void AppendQuestion(const ChoiceQuestion& question, ChoiceStyle style, std::string* prompt) {
  *prompt += question.question;
  *prompt += '\n';
  if (style == ChoiceStyle::kLetter) {
    for (size_t i = 0; i < question.choices.size(); ++i) {
      *prompt += fmt::format("{}. {}\n", static_cast<char>('A' + i), question.choices[i]);
    }
  }
  *prompt += "Answer:";
}

}  // namespace

Result<std::vector<ChoiceQuestion>> ParseChoiceQuestions(std::string_view lines,
                                                         const std::string& what) {
  std::vector<ChoiceQuestion> questions;
  int line_number = 0;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    const std::string where = fmt::format("{}: line {}", what, ++line_number);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    ASSIGN_OR_RETURN(const Json entry, ParseJson(line, where));
    if (!entry.is_object()) {
      return Status::Corrupt(
          fmt::format("{}: expected a JSON object, found {}", where, entry.type_name()));
    }
    ChoiceQuestion question;
    ASSIGN_OR_RETURN(question.question, ReadString(entry, "question", where));
    ASSIGN_OR_RETURN(question.subject, ReadStringOr(entry, "subject", "", where));
    RETURN_IF_ERROR(ReadChoices(entry, where, &question));
    RETURN_IF_ERROR(ReadAnswer(entry, where, &question));
    questions.push_back(std::move(question));
  }
  return questions;
}

std::string ChoicePrompt(const std::vector<ChoiceQuestion>& shots, const ChoiceQuestion& question,
                         ChoiceStyle style) {
  std::string prompt;
  for (const ChoiceQuestion& shot : shots) {
    AppendQuestion(shot, style, &prompt);
    prompt += ChoiceContinuation(shot, static_cast<size_t>(shot.answer), style) + "\n\n";
  }
  AppendQuestion(question, style, &prompt);
  return prompt;
}

std::string ChoiceContinuation(const ChoiceQuestion& question, size_t i, ChoiceStyle style) {
  if (style == ChoiceStyle::kText) return " " + question.choices[i];
  return fmt::format(" {}", static_cast<char>('A' + i));
}

}  // namespace hadal
