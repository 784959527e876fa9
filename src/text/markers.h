// The control tokens of the family, spelled once. The bar is U+FF5C, the separator U+2581.
// Specification, 9.4. Which of them a vocabulary has is the tokenizer's business.
#pragma once

#include <string_view>

namespace hadal::markers {

inline constexpr std::string_view kBegin = "<｜begin▁of▁sentence｜>";
inline constexpr std::string_view kEnd = "<｜end▁of▁sentence｜>";
inline constexpr std::string_view kUser = "<｜User｜>";
inline constexpr std::string_view kAssistant = "<｜Assistant｜>";
inline constexpr std::string_view kThink = "<think>";
inline constexpr std::string_view kEndThink = "</think>";

inline constexpr std::string_view kCallsBegin = "<｜tool▁calls▁begin｜>";
inline constexpr std::string_view kCallsEnd = "<｜tool▁calls▁end｜>";
inline constexpr std::string_view kCallBegin = "<｜tool▁call▁begin｜>";
inline constexpr std::string_view kCallEnd = "<｜tool▁call▁end｜>";
inline constexpr std::string_view kSeparator = "<｜tool▁sep｜>";
inline constexpr std::string_view kOutputsBegin = "<｜tool▁outputs▁begin｜>";
inline constexpr std::string_view kOutputsEnd = "<｜tool▁outputs▁end｜>";
inline constexpr std::string_view kOutputBegin = "<｜tool▁output▁begin｜>";
inline constexpr std::string_view kOutputEnd = "<｜tool▁output▁end｜>";

inline constexpr std::string_view kFimBegin = "<｜fim▁begin｜>";
inline constexpr std::string_view kFimHole = "<｜fim▁hole｜>";
inline constexpr std::string_view kFimEnd = "<｜fim▁end｜>";

// V3.2's calls: tags whose names begin with ｜DSML｜.
inline constexpr std::string_view kDsmlCallsBegin = "<｜DSML｜function_calls>";
inline constexpr std::string_view kDsmlCallsEnd = "</｜DSML｜function_calls>";
inline constexpr std::string_view kDsmlInvoke = "<｜DSML｜invoke name=\"";
inline constexpr std::string_view kDsmlInvokeEnd = "</｜DSML｜invoke>";
inline constexpr std::string_view kDsmlParameter = "<｜DSML｜parameter name=\"";
inline constexpr std::string_view kDsmlParameterEnd = "</｜DSML｜parameter>";

}  // namespace hadal::markers
