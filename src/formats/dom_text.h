// How a value of a JSON header looks in a message. Only for sources that parse with simdjson.
#pragma once

#include <string>

#include <simdjson.h>

#include "base/quote.h"

namespace hadal {

// A string between quotes, anything else in its shortest spelling; printable ASCII, 60 bytes of it.
inline std::string ShownValue(simdjson::dom::element value) {
  constexpr size_t kMaxBytes = 60;
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return Quoted(text, kMaxBytes);
  const std::string quoted = Quoted(simdjson::minify(value), kMaxBytes);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace hadal
