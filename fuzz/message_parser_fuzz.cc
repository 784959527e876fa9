// The first byte chooses layout and state, the second and third the cuts, the rest is the model's
// text. However it is cut, the message is the same, and the joined deltas are the message.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/message_parser.h"

namespace {

using hadal::MessageDelta;
using hadal::ParsedMessage;

constexpr hadal::ChatLayout kLayouts[] = {hadal::ChatLayout::kV2, hadal::ChatLayout::kV3,
                                          hadal::ChatLayout::kR1, hadal::ChatLayout::kV31,
                                          hadal::ChatLayout::kV32};

bool IsSame(const ParsedMessage& a, const ParsedMessage& b) {
  return a.reasoning == b.reasoning && a.content == b.content &&
         std::equal(a.tool_calls.begin(), a.tool_calls.end(), b.tool_calls.begin(),
                    b.tool_calls.end(), [](const hadal::ToolCall& x, const hadal::ToolCall& y) {
                      return x.name == y.name && x.arguments == y.arguments;
                    });
}

ParsedMessage Joined(const std::vector<MessageDelta>& deltas) {
  ParsedMessage message;
  for (const MessageDelta& delta : deltas) {
    switch (delta.kind) {
      case MessageDelta::Kind::kReasoning:
        message.reasoning += delta.text;
        break;
      case MessageDelta::Kind::kContent:
        message.content += delta.text;
        break;
      case MessageDelta::Kind::kToolCallStart:
        message.tool_calls.emplace_back();
        message.tool_calls.back().name = delta.text;
        break;
      case MessageDelta::Kind::kToolCallArguments:
        HADAL_CHECK(delta.tool_call_idx + 1 == static_cast<int>(message.tool_calls.size()));
        message.tool_calls.back().arguments += delta.text;
        break;
    }
  }
  return message;
}

// Pieces of 1 to `longest` bytes, by a generator that `seed` starts; 0: in one piece.
ParsedMessage Parse(hadal::ChatLayout layout, bool starts_in_reasoning, bool was_cut,
                    std::string_view text, size_t longest, uint32_t seed) {
  hadal::MessageParser parser(layout, starts_in_reasoning);
  std::vector<MessageDelta> deltas;
  while (!text.empty()) {
    seed = seed * 1664525u + 1013904223u;
    const size_t wanted = longest == 0 ? text.size() : 1 + (seed >> 16) % longest;
    const size_t length = std::min(wanted, text.size());
    parser.Push(text.substr(0, length), &deltas);
    text.remove_prefix(length);
  }
  parser.Finish(was_cut, &deltas);
  HADAL_CHECK(IsSame(Joined(deltas), parser.message()));
  return parser.message();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const hadal::ChatLayout layout = kLayouts[(data[0] >> 2) % std::size(kLayouts)];
  const bool starts_in_reasoning = (data[0] & 1) != 0, was_cut = (data[0] & 2) != 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 3, size - 3);
  const ParsedMessage whole = Parse(layout, starts_in_reasoning, was_cut, text, 0, data[2]);
  for (const size_t longest : {size_t{1}, size_t{data[1] % 32u + 1}}) {
    HADAL_CHECK(IsSame(whole, Parse(layout, starts_in_reasoning, was_cut, text, longest, data[2])));
  }
  return 0;
}
