// Puts a prompt together and keeps apart what a template wrote and what people wrote.
#pragma once

#include <string_view>
#include <utility>

#include "text/tokenizer.h"

namespace hadal {

class PromptBuilder {
 public:
  // Written by the template: control tokens in it count.
  PromptBuilder& Markup(std::string_view text) { return Append(text, /*is_markup=*/true); }

  // From a message, a name, a description, a result: control tokens in it are only text.
  PromptBuilder& Text(std::string_view text) { return Append(text, /*is_markup=*/false); }

  Prompt Take() { return std::move(prompt_); }

 private:
  PromptBuilder& Append(std::string_view text, bool is_markup) {
    if (text.empty()) return *this;
    if (prompt_.empty() || prompt_.back().is_markup != is_markup) {
      prompt_.push_back({.text = {}, .is_markup = is_markup});
    }
    prompt_.back().text.append(text);
    return *this;
  }

  Prompt prompt_;
};

}  // namespace hadal
