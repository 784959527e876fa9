// How a sequence is helped by guesses of its next tokens ("drafts"), which the model verifies in
// one step. Plain data. docs/speculation.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hadal {

// Who guesses.
enum class DrafterKind : uint8_t {
  kNone,
  kNgram,  // what followed the last tokens when they came before, in prompt or answer
  kMtp,    // the model's own multi-token-prediction module
  kModel,  // a second, smaller model with the same vocabulary
};
inline constexpr int kNumDrafterKinds = 4;

constexpr std::string_view DrafterName(DrafterKind kind) {
  switch (kind) {
    case DrafterKind::kNone:
      return "none";
    case DrafterKind::kNgram:
      return "ngram";
    case DrafterKind::kMtp:
      return "mtp";
    case DrafterKind::kModel:
      return "model";
  }
  return "none";
}

constexpr std::optional<DrafterKind> FindDrafter(std::string_view name) {
  for (int i = 0; i < kNumDrafterKinds; ++i) {
    const auto kind = static_cast<DrafterKind>(i);
    if (DrafterName(kind) == name) return kind;
  }
  return std::nullopt;
}

// When a guess is accepted.
enum class DraftAcceptance : uint8_t {
  kExact,    // while it is the token that would have been drawn without it: the text is the same
  kClassic,  // by the rejection rule: the text is another draw from the same distribution
};

// Guesses for one sequence in one step, whatever is asked for.
inline constexpr int kMostDrafts = 16;

struct Speculation {
  DrafterKind drafter = DrafterKind::kNone;
  int max_drafts = 0;  // per step
  DraftAcceptance acceptance = DraftAcceptance::kExact;
  // Whether fewer are made where they cost more than they bring; else always as many as possible.
  bool is_adaptive = true;

  bool is_on() const { return drafter != DrafterKind::kNone && max_drafts > 0; }
};

}  // namespace hadal
