#include "base/quote.h"

#include <fmt/format.h>

namespace hadal {

std::string Quoted(std::string_view text, size_t max_bytes) {
  std::string quoted = "\"";
  for (const char c : text.substr(0, max_bytes)) {
    if (c >= ' ' && c <= '~' && c != '"' && c != '\\') {
      quoted += c;
    } else {
      quoted += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
    }
  }
  quoted += text.size() > max_bytes ? "...\"" : "\"";
  return quoted;
}

}  // namespace hadal
