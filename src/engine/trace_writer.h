// A file of spans in Chrome's trace format (JSON), which Perfetto and chrome://tracing open: the
// parts of every step on one track, each answer's queue, prompt and decoding on its own. Any
// thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace hadal {

class TraceWriter {
 public:
  using Args = std::initializer_list<std::pair<std::string_view, int64_t>>;

  // The file is complete after every write but for its last bracket, which viewers do not need; it
  // ends at `max_bytes`, with a line in the log. kIo when it cannot be made.
  static Result<std::unique_ptr<TraceWriter>> Open(const std::string& path,
                                                   int64_t max_bytes = int64_t{1} << 30);
  ~TraceWriter();

  // Names are literals without quotes. Times are microseconds of one clock.
  void Span(std::string_view name, int64_t begin_us, int64_t end_us, Args args = {});
  void Counter(std::string_view name, int64_t time_us, int64_t value);
  // A span of the answer `id`, on a track of its own beside those of other answers.
  void AnswerSpan(std::string_view name, int64_t id, int64_t begin_us, int64_t end_us,
                  Args args = {});

 private:
  TraceWriter(FILE* file, int64_t max_bytes) : file_(file), max_bytes_(max_bytes) {}
  void Write(std::string_view event);

  FILE* const file_;
  const int64_t max_bytes_;
  std::mutex mutex_;
  int64_t num_bytes_ = 0;  // by mutex_
  bool is_full_ = false;
};

}  // namespace hadal
