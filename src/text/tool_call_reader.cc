#include "text/tool_call_reader.h"

#include <algorithm>

namespace hadal {

void DeltaSink::Open(std::vector<MessageDelta>* deltas) {
  deltas_ = deltas;
  num_handed_out_ = deltas->size();
}

void DeltaSink::AddReasoning(std::string_view text) {
  message_.reasoning.append(text);
  AddDelta(MessageDelta::Kind::kReasoning, text);
}

void DeltaSink::AddContent(std::string_view text) {
  message_.content.append(text);
  AddDelta(MessageDelta::Kind::kContent, text);
}

void DeltaSink::StartCall(std::string_view name) {
  message_.tool_calls.emplace_back();
  message_.tool_calls.back().name = name;
  AddDelta(MessageDelta::Kind::kToolCallStart, name);
}

void DeltaSink::AddArguments(std::string_view text) {
  message_.tool_calls.back().arguments.append(text);
  AddDelta(MessageDelta::Kind::kToolCallArguments, text);
}

void DeltaSink::AddDelta(MessageDelta::Kind kind, std::string_view text) {
  if (text.empty()) return;
  const bool is_of_call =
      kind == MessageDelta::Kind::kToolCallStart || kind == MessageDelta::Kind::kToolCallArguments;
  const int tool_call_idx = is_of_call ? static_cast<int>(message_.tool_calls.size()) - 1 : 0;
  if (deltas_->size() > num_handed_out_ && kind != MessageDelta::Kind::kToolCallStart) {
    MessageDelta& last = deltas_->back();
    if (last.kind == kind && last.tool_call_idx == tool_call_idx) {
      last.text.append(text);
      return;
    }
  }
  deltas_->push_back({.kind = kind, .tool_call_idx = tool_call_idx, .text = std::string(text)});
}

std::unique_ptr<ToolCallReader> MakeToolCallReader(ChatLayout layout) {
  switch (layout) {
    case ChatLayout::kV2:
      return nullptr;
    case ChatLayout::kV25:
    case ChatLayout::kV3:
    case ChatLayout::kV30324:
    case ChatLayout::kR1:
    case ChatLayout::kR10528:
      return MakeFencedCallReader();
    case ChatLayout::kV31:
    case ChatLayout::kV32Exp:
      return MakePlainCallReader();
    case ChatLayout::kV32:
      return MakeDsmlCallReader();
  }
  return nullptr;
}

bool IsPieceOfMarker(std::string_view text) {
  return text.find("<｜") != std::string_view::npos || text.find("</｜") != std::string_view::npos;
}

bool MayBeToolName(std::string_view name) {
  return name.size() <= kMaxToolNameBytes && std::none_of(name.begin(), name.end(), [](char c) {
           return c == '<' || (c >= 0 && c < ' ');
         });
}

size_t GapLength(std::string_view text) {
  return std::min(text.find_first_not_of(" \t\r\n"), text.size());
}

}  // namespace hadal
