// Typed reads of a request's fields. A field that is absent or null leaves its target as it is;
// every error is kInvalidArgument and begins with the field's path and a colon, which is how a
// reply names the field.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace hadal {

class FieldReader {
 public:
  // `object` must outlive the reader. `path` is written before the fields' names: "thinking".
  // REQUIRES: it is an object.
  explicit FieldReader(const Json& object, std::string path = {});

  // The value, or null when it is absent or null.
  const Json* Find(std::string_view key) const;
  std::string PathOf(std::string_view key) const;

  Status Number(std::string_view key, double low, double high, float* out) const;
  // Whole numbers written as 8.0 are taken.
  Status Integer(std::string_view key, int64_t low, int64_t high, int* out) const;
  Status Wide(std::string_view key, int64_t low, int64_t high, int64_t* out) const;
  Status Flag(std::string_view key, bool* out) const;
  Status Text(std::string_view key, std::string* out) const;
  // One string, or a list of them.
  Status Texts(std::string_view key, std::vector<std::string>* out) const;
  // The object behind a key; null when there is none.
  Result<const Json*> Object(std::string_view key) const;
  Result<const Json*> List(std::string_view key) const;

  // For documented fields that only take some values here: one of `allowed`, or an error that says
  // so.
  Status Only(std::string_view key, std::initializer_list<Json> allowed) const;
  // For documented fields that cannot be honoured: an error with the reason when one is there.
  Status Refuse(std::string_view key, std::string_view why) const;

  // "<path>: expected <expected>, found <what is there>".
  Status Mismatch(std::string_view key, std::string_view expected) const;

 private:
  const Json& object_;
  const std::string path_;
};

// What a value is, for a message: "a string", "the number 5", ... Text from outside is quoted.
std::string DescribeJson(const Json* value);

// The same error as every read gives, for a value at `path`.
Status FieldMismatch(std::string_view path, std::string_view expected, const Json* found);

}  // namespace hadal
