#include "engine/response_stream.h"

#include <utility>

#include "base/check.h"

namespace hadal {

void ResponseChunk::Clear() {
  text.clear();
  pieces.clear();
  tokens.clear();
  top_logprobs.clear();
  ends.clear();
}

void ResponseChunk::AddPiece(int choice_idx, MessageDelta::Kind kind, int tool_call_idx,
                             std::string_view piece) {
  const bool is_start = kind == MessageDelta::Kind::kToolCallStart;
  if (piece.empty() && !is_start) return;
  const size_t begin = text.size();
  text.append(piece);
  if (!pieces.empty() && !is_start) {
    ResponsePiece& last = pieces.back();
    if (last.choice_idx == choice_idx && last.kind == kind && last.tool_call_idx == tool_call_idx) {
      last.text_size += piece.size();
      return;
    }
  }
  pieces.push_back({choice_idx, kind, tool_call_idx, begin, piece.size()});
}

void ResponseChunk::AddToken(int choice_idx, const SampledToken& token, const StepResult& result) {
  tokens.push_back({choice_idx, token});
  tokens.back().token.top_begin = static_cast<int>(top_logprobs.size());
  const auto first = result.top_logprobs.begin() + token.top_begin;
  top_logprobs.insert(top_logprobs.end(), first, first + token.num_top);
}

void ResponseChunk::Append(const ResponseChunk& part) {
  for (const ResponsePiece& piece : part.pieces)
    AddPiece(piece.choice_idx, piece.kind, piece.tool_call_idx, part.TextOf(piece));
  const int offset = static_cast<int>(top_logprobs.size());
  for (const ResponseToken& token : part.tokens) {
    tokens.push_back(token);
    tokens.back().token.top_begin += offset;
  }
  top_logprobs.insert(top_logprobs.end(), part.top_logprobs.begin(), part.top_logprobs.end());
  ends.insert(ends.end(), part.ends.begin(), part.ends.end());
}

ResponseStream::ResponseStream(ResponseHead head, int64_t max_unread_bytes)
    : head_(std::move(head)), max_unread_bytes_(max_unread_bytes) {}

bool ResponseStream::MustTell() {
  if (!listener_ || was_told_ || !has_news()) return false;
  was_told_ = true;
  return true;
}

void ResponseStream::SetListener(std::function<void()> listener) {
  bool must_tell = false;
  {
    const std::lock_guard lock(mutex_);
    HADAL_CHECK(!listener_);
    listener_ = std::move(listener);
    must_tell = MustTell();
  }
  if (must_tell) listener_();
}

bool ResponseStream::Write(const ResponseChunk& part) {
  bool is_in_time = false, must_tell = false;
  {
    const std::lock_guard lock(mutex_);
    pending_.Append(part);
    num_ended_ += static_cast<int>(part.ends.size());
    const size_t unread = pending_.text.size() + pending_.tokens.size() * sizeof(ResponseToken) +
                          pending_.top_logprobs.size() * sizeof(TokenLogprob);
    is_in_time = static_cast<int64_t>(unread) <= max_unread_bytes_;
    must_tell = MustTell();
  }
  arrived_.notify_one();
  if (must_tell) listener_();
  return is_in_time;
}

ResponseStream::ReadOutcome ResponseStream::Take(ResponseChunk* chunk) {
  chunk->Clear();
  was_told_ = false;
  if (has_news()) {
    std::swap(*chunk, pending_);
    return ReadOutcome::kChunk;
  }
  return num_ended_ == num_choices() ? ReadOutcome::kEnd : ReadOutcome::kTimeout;
}

bool ResponseStream::Next(ResponseChunk* chunk) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [this] { return has_news() || num_ended_ == num_choices(); });
  return Take(chunk) == ReadOutcome::kChunk;
}

ResponseStream::ReadOutcome ResponseStream::NextWithin(std::chrono::milliseconds timeout,
                                                       ResponseChunk* chunk) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, timeout, [this] { return has_news() || num_ended_ == num_choices(); });
  return Take(chunk);
}

}  // namespace hadal
