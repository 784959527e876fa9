// Text from outside, made fit for a one-line message.
#pragma once

#include <string>
#include <string_view>

namespace hadal {

// `text` between double quotes: printable ASCII as it is, everything else (and the quote and the
// backslash) as \xNN, at most `max_bytes` of it, then "...".
std::string Quoted(std::string_view text, size_t max_bytes = 120);

}  // namespace hadal
