#include "engine/trace_writer.h"

#include <cerrno>
#include <cstring>
#include <iterator>

#include <fmt/format.h>

#include "base/log.h"

namespace hadal {
namespace {

constexpr std::string_view kHead =
    "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":\"hadal\"}},\n"
    "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"steps\"}}";

std::string ArgsText(TraceWriter::Args args) {
  std::string text = "{";
  for (const auto& [name, value] : args) {
    if (text.size() > 1) text += ',';
    fmt::format_to(std::back_inserter(text), "\"{}\":{}", name, value);
  }
  return text + "}";
}

}  // namespace

Result<std::unique_ptr<TraceWriter>> TraceWriter::Open(const std::string& path, int64_t max_bytes) {
  FILE* const file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return Status::Io(fmt::format("{}: {}", path, std::strerror(errno)));
  auto writer = std::unique_ptr<TraceWriter>(new TraceWriter(file, max_bytes));
  std::fwrite(kHead.data(), 1, kHead.size(), file);
  return writer;
}

TraceWriter::~TraceWriter() {
  std::fputs("\n]\n", file_);
  std::fclose(file_);
}

void TraceWriter::Write(std::string_view event) {
  const std::lock_guard lock(mutex_);
  if (is_full_) return;
  num_bytes_ += static_cast<int64_t>(event.size()) + 2;
  if (num_bytes_ > max_bytes_) {
    is_full_ = true;
    return Log(LogLevel::kWarning, "trace: the file has {} bytes, nothing more is written",
               max_bytes_);
  }
  std::fputs(",\n", file_);
  std::fwrite(event.data(), 1, event.size(), file_);
}

void TraceWriter::Span(std::string_view name, int64_t begin_us, int64_t end_us, Args args) {
  Write(fmt::format(R"({{"name":"{}","ph":"X","pid":1,"tid":1,"ts":{},"dur":{},"args":{}}})", name,
                    begin_us, end_us - begin_us, ArgsText(args)));
}

void TraceWriter::Counter(std::string_view name, int64_t time_us, int64_t value) {
  Write(fmt::format(R"({{"name":"{}","ph":"C","pid":1,"ts":{},"args":{{"value":{}}}}})", name,
                    time_us, value));
}

void TraceWriter::AnswerSpan(std::string_view name, int64_t id, int64_t begin_us, int64_t end_us,
                             Args args) {
  Write(fmt::format(R"({{"name":"{}","cat":"answer","ph":"b","id":{},"pid":1,"ts":{},"args":{}}})",
                    name, id, begin_us, ArgsText(args)));
  Write(fmt::format(R"({{"name":"{}","cat":"answer","ph":"e","id":{},"pid":1,"ts":{}}})", name, id,
                    end_us));
}

}  // namespace hadal
