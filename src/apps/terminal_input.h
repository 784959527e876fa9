// Messages that a person types, or a script pipes in: one a line, unless a line asks for more.
#pragma once

#include <optional>
#include <string>

namespace hadal {

// Reads standard input; prompts stand on standard error, and only when both are terminals.
class TerminalInput {
 public:
  TerminalInput();

  // The next message: a line; lines that end in a backslash, joined; or what stands between two
  // lines of three quotes. Nothing at the end of the input. Ctrl-C drops what was typed so far.
  // REQUIRES: HandleInterrupts() was called.
  std::optional<std::string> ReadMessage();

 private:
  enum class Outcome { kLine, kEnd, kInterrupted };
  Outcome ReadLine(const char* prompt, std::string* line);
  std::optional<std::string> ReadQuoted(std::string text);

  const bool is_terminal_;
  std::string buffer_;  // read and not yet used
  bool is_at_end_ = false;
};

}  // namespace hadal
