#include "text/stream_decoder.h"

#include "base/utf8.h"

namespace hadal {

std::string StreamDecoder::Push(TokenId token) {
  held_ += tokenizer_->TokenBytes(token);
  std::string tail = held_.substr(held_.size() - static_cast<size_t>(UnfinishedTailLength(held_)));
  held_.resize(held_.size() - tail.size());
  std::string text = RepairUtf8(held_);
  held_ = std::move(tail);
  return text;
}

std::string StreamDecoder::Finish() {
  std::string text = RepairUtf8(held_);
  held_.clear();
  return text;
}

}  // namespace hadal
