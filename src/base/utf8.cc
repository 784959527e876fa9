#include "base/utf8.h"

namespace hadal {
namespace {

struct LeadByte {
  int length = 0;  // 0: cannot start a character
  uint8_t second_low = 0x80, second_high = 0xBF;
};

// Unicode 3.9, table 3-7: which second byte each first byte allows.
LeadByte ClassifyLead(uint8_t byte) {
  if (byte < 0x80) return {.length = 1};
  if (byte < 0xC2) return {.length = 0};
  if (byte < 0xE0) return {.length = 2};
  if (byte == 0xE0) return {.length = 3, .second_low = 0xA0};
  if (byte == 0xED) return {.length = 3, .second_high = 0x9F};
  if (byte < 0xF0) return {.length = 3};
  if (byte == 0xF0) return {.length = 4, .second_low = 0x90};
  if (byte < 0xF4) return {.length = 4};
  if (byte == 0xF4) return {.length = 4, .second_high = 0x8F};
  return {.length = 0};
}

// Bytes of `text` that follow the rules of its lead byte: up to lead.length.
int WellFormedLength(std::string_view text, const LeadByte& lead) {
  int length = 1;
  while (length < lead.length && length < static_cast<int>(text.size())) {
    const auto byte = static_cast<uint8_t>(text[length]);
    const uint8_t low = length == 1 ? lead.second_low : 0x80;
    const uint8_t high = length == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) break;
    ++length;
  }
  return length;
}

}  // namespace

DecodedCodePoint DecodeCodePoint(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return {.value = first, .length = 1, .is_valid = true};
  const LeadByte lead = ClassifyLead(first);
  if (lead.length == 0) return {};
  const int length = WellFormedLength(text, lead);
  if (length < lead.length) return {.length = length};
  char32_t value = first & (0x7Fu >> lead.length);
  for (int i = 1; i < length; ++i) value = (value << 6) | (static_cast<uint8_t>(text[i]) & 0x3Fu);
  return {.value = value, .length = length, .is_valid = true};
}

void AppendCodePoint(char32_t value, std::string* out) {
  const auto put = [out](char32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | (value >> 6));
    put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | (value >> 12));
    put(0x80 | ((value >> 6) & 0x3F));
    put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | (value >> 18));
    put(0x80 | ((value >> 12) & 0x3F));
    put(0x80 | ((value >> 6) & 0x3F));
    put(0x80 | (value & 0x3F));
  }
}

bool IsValidUtf8(std::string_view text) {
  while (!text.empty()) {
    const DecodedCodePoint point = DecodeCodePoint(text);
    if (!point.is_valid) return false;
    text.remove_prefix(static_cast<size_t>(point.length));
  }
  return true;
}

std::string RepairUtf8(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size());
  while (!text.empty()) {
    const DecodedCodePoint point = DecodeCodePoint(text);
    if (point.is_valid) {
      repaired.append(text.substr(0, static_cast<size_t>(point.length)));
    } else {
      AppendCodePoint(kReplacementCharacter, &repaired);
    }
    text.remove_prefix(static_cast<size_t>(point.length));
  }
  return repaired;
}

int UnfinishedTailLength(std::string_view text) {
  const int size = static_cast<int>(text.size());
  for (int tail = 1; tail <= 3 && tail <= size; ++tail) {
    const std::string_view last = text.substr(static_cast<size_t>(size - tail));
    const auto byte = static_cast<uint8_t>(last[0]);
    if (byte >= 0x80 && byte < 0xC0) continue;  // a continuation byte: its lead is further left
    const LeadByte lead = ClassifyLead(byte);
    return lead.length > tail && WellFormedLength(last, lead) == tail ? tail : 0;
  }
  return 0;
}

}  // namespace hadal
