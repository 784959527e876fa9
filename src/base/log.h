// One levelled line per event to standard error. Standard output belongs to results.
#pragma once

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace hadal {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// Lines below this level are dropped. Any thread; the default is kWarning.
void SetLogLevel(LogLevel level);
bool IsLogged(LogLevel level);
void LogLine(LogLevel level, std::string_view line);

template <class... Args>
void Log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (IsLogged(level)) LogLine(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace hadal
