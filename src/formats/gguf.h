// The GGUF container: keys with values, a table of tensors, then their data. Specification, 8.1.
// Knows nothing of what keys and tensors mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "formats/ggml_blocks.h"

namespace hadal {

// The values are the ids in the files.
enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// A list as it lies in the file: elements one after the other, a string as its length (64 bits) and
// its bytes. All of it is checked to be there.
struct GgufArray {
  GgufType element_type = GgufType::kU8;  // never an array
  uint64_t count = 0;
  std::span<const std::byte> bytes;

  // Strings only, in order. REQUIRES: element_type is kString.
  std::vector<std::string_view> Strings() const;
};

// One value. Writers disagree about the width of integers, so a reader asks for what it needs;
// nothing when the value is of another kind or does not fit.
class GgufValue {
 public:
  using Any = std::variant<bool, int64_t, uint64_t, double, std::string_view, GgufArray>;
  explicit GgufValue(const Any& value) : value_(value) {}

  std::optional<bool> AsBool() const;
  std::optional<int64_t> AsInt() const;
  std::optional<double> AsDouble() const;  // integers too
  std::optional<std::string_view> AsString() const;
  const GgufArray* AsArray() const { return std::get_if<GgufArray>(&value_); }

 private:
  Any value_;
};

struct GgufTensor {
  std::string_view name;
  GgmlTypeInfo type = {};
  std::vector<int64_t> sizes;        // fastest axis first: a matrix [out, in] is {in, out}
  std::span<const std::byte> bytes;  // no particular alignment

  int64_t num_elements() const;
};

struct GgufFile {
  uint32_t version = 0;
  int64_t alignment = 0;
  int64_t data_begin = 0;                                        // of the tensors' data in the file
  std::vector<std::pair<std::string_view, GgufValue>> metadata;  // in the order of the file
  std::vector<GgufTensor> tensors;                               // in the order of the file

  const GgufValue* Find(std::string_view key) const;  // null when there is none
};

bool IsGguf(std::span<const std::byte> file);  // by its first four bytes

// A file whose whole content is `file`; everything found points into it. `what` names the file in
// errors. kCorrupt unless every rule holds: version 2 or 3, known types, no key or tensor twice, an
// alignment that is a power of two, one to four sizes, whole blocks, offsets that are multiples of
// the alignment, data inside the file and without overlap. kUnsupported for a block type that
// cannot be decoded. Counts are compared with what the file could hold before memory is taken.
Result<GgufFile> ParseGguf(std::span<const std::byte> file, const std::string& what);

}  // namespace hadal
