// Golden data of the source tree.
#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/json.h"
#include "sys/mapped_file.h"

namespace hadal {

inline std::string GoldenPath(std::string_view name) {
  return std::string(HADAL_SOURCE_DIR) + "/tests/golden/" + std::string(name);
}

// The parsed file; fails the test and returns null when it cannot be read.
inline Json ReadGoldenJson(std::string_view name) {
  const std::string path = GoldenPath(name);
  const Result<std::string> text = ReadFile(path, int64_t{1} << 30);
  if (!text.ok()) {
    ADD_FAILURE() << text.status().message();
    return nullptr;
  }
  Result<Json> value = ParseJson(text.value(), path);
  if (!value.ok()) {
    ADD_FAILURE() << value.status().message();
    return nullptr;
  }
  return std::move(value).value();
}

}  // namespace hadal
