#include "server/generation_reply.h"

#include <chrono>
#include <utility>

namespace hadal {
namespace {

std::string_view LogName(FinishReason finish) {
  if (finish == FinishReason::kError) return "error";
  if (finish == FinishReason::kCancelled) return "cancelled";
  return OpenAiFinishReason(finish);
}

}  // namespace

GenerationReply::GenerationReply(Engine* engine,
                                 std::vector<std::shared_ptr<ResponseStream>> streams,
                                 std::unique_ptr<ReplyWriter> writer, const ApiCall& call)
    : engine_(engine),
      streams_(std::move(streams)),
      writer_(std::move(writer)),
      is_streamed_(call.is_streamed),
      model_(call.model),
      user_(call.user),
      has_ended_(streams_.size()) {}

GenerationReply::~GenerationReply() { Abandon(); }

void GenerationReply::Start(std::function<void()> wake) {
  for (const auto& stream : streams_) stream->SetListener(wake);
}

bool GenerationReply::Read(ReplyPart* part) {
  *part = {};
  std::string out;
  const bool is_first = !has_begun_;
  if (is_first) {
    has_begun_ = true;
    writer_->Begin(streams_[0]->head(), &out);
  }
  if (failure_.ok()) TakeNews(&out);
  if (num_ended_ == streams_.size() || !failure_.ok()) {
    Finish(&out, part);
  } else if (is_streamed_ && is_first) {
    part->head.emplace();
  } else if (out.empty()) {
    return false;
  }
  if (is_streamed_ && is_first) {
    if (!part->head) part->head.emplace();
    part->head->content_type = "text/event-stream";
    part->head->headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  }
  (part->head ? part->head->body : part->body) = std::move(out);
  return true;
}

void GenerationReply::TakeNews(std::string* out) {
  using Outcome = ResponseStream::ReadOutcome;
  int first_choice = 0;
  for (size_t i = 0; i < streams_.size() && failure_.ok(); ++i) {
    while (!has_ended_[i] && failure_.ok()) {
      const Outcome outcome = streams_[i]->NextWithin(std::chrono::milliseconds(0), &chunk_);
      if (outcome == Outcome::kTimeout) break;
      if (outcome == Outcome::kEnd) {
        has_ended_[i] = true;
        ++num_ended_;
        break;
      }
      NoteEnds(chunk_);
      if (failure_.ok()) writer_->Add(chunk_, first_choice, out);
    }
    first_choice += streams_[i]->num_choices();
  }
}

void GenerationReply::NoteEnds(const ResponseChunk& chunk) {
  for (const ResponseEnd& end : chunk.ends) {
    if (end.choice_idx == 0) {
      usage_.prompt_tokens += end.usage.prompt_tokens;
      usage_.cached_tokens += end.usage.cached_tokens;
      timings_ = end.timings;
    }
    usage_.completion_tokens += end.usage.completion_tokens;
    if (!finish_reasons_.empty()) finish_reasons_ += ",";
    finish_reasons_ += LogName(end.finish);
    if (end.finish == FinishReason::kError) Fail(Status(end.error_code, end.error));
    if (end.finish == FinishReason::kCancelled)
      Fail(Status::Cancelled("the server is shutting down"));
  }
}

void GenerationReply::Fail(const Status& status) {
  if (!failure_.ok()) return;
  failure_ = status;
  for (const auto& stream : streams_) engine_->Cancel(*stream);
}

void GenerationReply::Finish(std::string* out, ReplyPart* part) {
  is_over_ = part->is_last = true;
  if (failure_.ok()) {
    writer_->End(out);
    if (!is_streamed_) part->head.emplace();
  } else if (is_streamed_) {
    out->append(ErrorEvent(writer_->dialect(), failure_));
  } else {
    part->head = ErrorReply(writer_->dialect(), failure_);
    *out = std::move(part->head->body);
  }
}

std::string_view GenerationReply::keep_alive() const {
  return is_streamed_ ? writer_->keep_alive() : std::string_view();
}

void GenerationReply::Interrupt() {
  if (!is_over_) Fail(Status::Cancelled("the server is shutting down"));
}

void GenerationReply::Abandon() {
  if (std::exchange(is_over_, true)) return;
  for (const auto& stream : streams_) engine_->Cancel(*stream);
}

void GenerationReply::AddToLog(Json* line) const {
  const auto milliseconds = [](int64_t us) { return static_cast<double>(us) / 1000; };
  (*line)["model"] = model_;
  (*line)["stream"] = is_streamed_;
  if (!user_.empty()) (*line)["user"] = user_;
  (*line)["prompt_tokens"] = usage_.prompt_tokens;
  (*line)["cached_tokens"] = usage_.cached_tokens;
  (*line)["completion_tokens"] = usage_.completion_tokens;
  (*line)["finish_reason"] = finish_reasons_;
  (*line)["queue_ms"] = milliseconds(timings_.queue_us);
  (*line)["prefill_ms"] = milliseconds(timings_.prefill_us);
  (*line)["decode_ms"] = milliseconds(timings_.decode_us);
  if (!failure_.ok()) (*line)["error"] = failure_.message();
}

}  // namespace hadal
