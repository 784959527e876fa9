// Typed reads from JSON whose errors name the file and the path, and Python's spelling for prompts.
// All of the project's JSON is nlohmann's, except the two large files (tokenizer.json, the weight
// index) and the safetensors header, which are read with simdjson where they are parsed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/json_fwd.h"
#include "base/status.h"

namespace hadal {

// kCorrupt with `what` (a file or a field) and the place of the fault. Nesting deeper than 128
// levels and invalid UTF-8 are refused; of a repeated key the last value counts.
Result<Json> ParseJson(std::string_view text, std::string_view what);

// Reads a key that must be there. Errors are kCorrupt and say "<what>: <key>: expected ..., found
// ...".
Result<int64_t> ReadInt(const Json& object, std::string_view key, int64_t low, int64_t high,
                        std::string_view what);
Result<double> ReadNumber(const Json& object, std::string_view key, std::string_view what);
Result<bool> ReadBool(const Json& object, std::string_view key, std::string_view what);
Result<std::string> ReadString(const Json& object, std::string_view key, std::string_view what);

// True when the key is there and not null.
bool HasValue(const Json& object, std::string_view key);

// The same, with a value for an absent or null key.
Result<int64_t> ReadIntOr(const Json& object, std::string_view key, int64_t low, int64_t high,
                          int64_t absent, std::string_view what);
Result<double> ReadNumberOr(const Json& object, std::string_view key, double absent,
                            std::string_view what);
Result<bool> ReadBoolOr(const Json& object, std::string_view key, bool absent,
                        std::string_view what);
Result<std::string> ReadStringOr(const Json& object, std::string_view key, std::string_view absent,
                                 std::string_view what);

// One line of valid JSON; ill-formed UTF-8 becomes U+FFFD.
std::string DumpJson(const Json& value);

}  // namespace hadal
