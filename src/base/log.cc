#include "base/log.h"

#include <atomic>
#include <memory>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace hadal {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kWarning};

spdlog::logger& Logger() {
  // Leaked on purpose: threads may log until the very end of the process.
  static spdlog::logger* logger = [] {
    auto* made =
        new spdlog::logger("hadal", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_level(spdlog::level::trace);
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
    return made;
  }();
  return *logger;
}

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

}  // namespace

void SetLogLevel(LogLevel level) { g_level.store(level, std::memory_order_relaxed); }

bool IsLogged(LogLevel level) { return level >= g_level.load(std::memory_order_relaxed); }

void LogLine(LogLevel level, std::string_view line) {
  Logger().log(SpdlogLevel(level), "{}", line);
}

}  // namespace hadal
