#include "apps/terminal_input.h"

#include <cerrno>
#include <cstdio>
#include <string_view>

#include <poll.h>
#include <unistd.h>

#include "apps/interrupt.h"

namespace hadal {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";
constexpr const char* kPrompt = "> ";
constexpr const char* kMorePrompt = ". ";

// False when ctrl-C came first. A signal just before a read, or one that another thread took, would
// not end the read: so wait in short turns and look.
bool WaitForInput(InterruptGuard* interrupts) {
  constexpr int kTurnMs = 100;
  while (!interrupts->TakeInterrupt()) {
    pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const int count = poll(&input, 1, kTurnMs);
    if (count > 0 || (count < 0 && errno != EINTR)) return true;
  }
  return false;
}

}  // namespace

TerminalInput::TerminalInput()
    : is_terminal_(isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1) {}

TerminalInput::Outcome TerminalInput::ReadLine(const char* prompt, std::string* line) {
  InterruptGuard interrupts;
  if (is_terminal_) std::fputs(prompt, stderr);
  size_t line_end = 0;
  while ((line_end = buffer_.find('\n')) == std::string::npos && !is_at_end_) {
    char chunk[4096];
    if (!WaitForInput(&interrupts)) {
      buffer_.clear();
      if (is_terminal_) std::fputs("\n(ctrl-D leaves)\n", stderr);
      return Outcome::kInterrupted;
    }
    const ssize_t count = read(STDIN_FILENO, chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      is_at_end_ = true;
    } else {
      buffer_.append(chunk, static_cast<size_t>(count));
    }
  }
  if (line_end == std::string::npos) {
    if (buffer_.empty()) return Outcome::kEnd;
    line_end = buffer_.size();
  }
  *line = buffer_.substr(0, line_end);
  buffer_.erase(0, line_end + 1);
  if (line->ends_with('\r')) line->pop_back();
  return Outcome::kLine;
}

std::optional<std::string> TerminalInput::ReadMessage() {
  std::string message, line;
  const char* prompt = kPrompt;
  while (true) {
    const Outcome outcome = ReadLine(prompt, &line);
    if (outcome == Outcome::kEnd)
      return message.empty() ? std::nullopt : std::optional<std::string>(message);
    if (outcome == Outcome::kInterrupted) {
      message.clear();
      prompt = kPrompt;
      continue;
    }
    if (message.empty() && line.starts_with(kQuotes)) {
      std::optional<std::string> quoted = ReadQuoted(line.substr(kQuotes.size()));
      if (quoted) return quoted;
      continue;
    }
    const bool goes_on = line.ends_with('\\');
    if (goes_on) line.back() = '\n';
    message += line;
    if (!goes_on) return message;
    prompt = kMorePrompt;
  }
}

// Until a line that ends in three quotes, or the end of the input. Nothing when it was interrupted.
std::optional<std::string> TerminalInput::ReadQuoted(std::string text) {
  std::string line;
  while (!text.ends_with(kQuotes)) {
    const Outcome outcome = ReadLine(kMorePrompt, &line);
    if (outcome == Outcome::kInterrupted) return std::nullopt;
    if (outcome == Outcome::kEnd) return text;
    if (!text.empty()) text += '\n';
    text += line;
  }
  text.resize(text.size() - kQuotes.size());
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace hadal
