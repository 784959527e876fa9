#include "engine/response_collector.h"

#include "base/check.h"

namespace hadal {
namespace {

void AddPiece(const ResponsePiece& piece, std::string_view text, CollectedChoice* choice) {
  switch (piece.kind) {
    case MessageDelta::Kind::kReasoning:
      choice->reasoning += text;
      return;
    case MessageDelta::Kind::kContent:
      choice->content += text;
      return;
    case MessageDelta::Kind::kToolCallStart:
      HADAL_CHECK(piece.tool_call_idx == static_cast<int>(choice->tool_calls.size()));
      choice->tool_calls.emplace_back().name = text;
      return;
    case MessageDelta::Kind::kToolCallArguments:
      choice->tool_calls[piece.tool_call_idx].arguments += text;
      return;
  }
}

}  // namespace

void ResponseCollector::Add(const ResponseChunk& chunk) {
  for (const ResponsePiece& piece : chunk.pieces)
    AddPiece(piece, chunk.TextOf(piece), &choices_[piece.choice_idx]);
  for (const ResponseToken& token : chunk.tokens) {
    CollectedChoice& choice = choices_[token.choice_idx];
    choice.tokens.push_back(token.token);
    choice.tokens.back().top_begin = static_cast<int>(choice.top_logprobs.size());
    const auto first = chunk.top_logprobs.begin() + token.token.top_begin;
    choice.top_logprobs.insert(choice.top_logprobs.end(), first, first + token.token.num_top);
  }
  for (const ResponseEnd& end : chunk.ends) choices_[end.choice_idx].end = end;
}

void ResponseCollector::ReadAll(ResponseStream* stream) {
  ResponseChunk chunk;
  while (stream->Next(&chunk)) Add(chunk);
}

}  // namespace hadal
