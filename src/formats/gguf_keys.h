// Typed reads of the keys of a GGUF file, whose errors name file and key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "formats/gguf.h"

namespace hadal {

class GgufKeys {
 public:
  // Keeps references; `prefix` ("deepseek2.") goes before each key; `what` names the file.
  GgufKeys(const GgufFile& file, std::string prefix, const std::string& what)
      : file_(file), prefix_(std::move(prefix)), what_(what) {}

  const std::string& what() const { return what_; }
  bool Has(std::string_view key) const { return Find(key) != nullptr; }

  // Nothing when the key is absent; kCorrupt when it is of another kind or out of range.
  Result<std::optional<int64_t>> Int(std::string_view key, int64_t low, int64_t high) const;
  Result<std::optional<double>> Number(std::string_view key) const;
  Result<std::optional<bool>> Bool(std::string_view key) const;
  Result<std::optional<std::string>> Text(std::string_view key) const;  // UTF-8

  // kCorrupt when the key is absent too.
  Result<int64_t> RequiredInt(std::string_view key, int64_t low, int64_t high) const;
  Result<double> RequiredNumber(std::string_view key) const;

  Status Fault(std::string_view key, std::string_view expected, std::string_view found) const;

 private:
  const GgufValue* Find(std::string_view key) const;

  const GgufFile& file_;
  std::string prefix_;
  const std::string& what_;
};

}  // namespace hadal
