// JSON as Python's json module reads and spells it: DeepSeek's prompts contain what
// json.dumps(value, ensure_ascii=False) writes, so its spelling is part of the prompt's bytes.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace hadal {

// As ParseJson, but integers beyond 64 bits keep their digits. Such an integer becomes a binary
// value whose bytes are the digits, because Json has no other place for them; DumpPythonJson is the
// one that understands it. Errors are kCorrupt and begin with `what`.
Result<Json> ParseJsonKeepingIntegers(std::string_view text, std::string_view what);

// json.dumps(value, ensure_ascii=False): ", " and ": " between, floats by repr (1e3 becomes
// 1000.0), integers digit by digit, non-ASCII characters as they are.
std::string DumpPythonJson(const Json& value);

// The inside of a JSON string, without the quotes. Bytes are escaped one by one, so pieces of a
// string may be escaped apart and joined.
void AppendPythonJsonEscaped(std::string_view text, std::string* out);

// repr(value) of a Python float: the shortest digits that give the value back, with an exponent
// when it is below -4 or above 15. Not finite: "NaN", "Infinity", "-Infinity", as json.dumps does.
std::string PythonFloatRepr(double value);

}  // namespace hadal
