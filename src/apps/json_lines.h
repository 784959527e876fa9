// JSON Lines on standard input and output, as the text commands speak them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace hadal {

// Calls `take` with each line of standard input that is not blank; `what` is "standard input:
// line 3". Ends with the first error. Output is flushed after each line: whoever sends lines one by
// one waits for each answer.
Status ForEachInputLine(
    const std::function<Status(std::string_view text, const std::string& what)>& take);

// One line of ASCII: U+0085 and U+2028, written as they are, end a line for some readers.
void PrintJsonLine(const Json& value);

}  // namespace hadal
