#include "formats/gguf_metadata.h"

#include <string>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "base/quote.h"
#include "base/utf8.h"

namespace hadal {
namespace {

constexpr uint64_t kMinPairBytes = 8 + 4 + 1;  // length of the key, type, a value of one byte

// Bytes of a value of fixed size; 0 for strings, arrays and ids that mean nothing.
int FixedSize(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      break;
  }
  return 0;
}

Status CheckBools(std::span<const std::byte> bytes, std::string_view subject,
                  const GgufReader& reader) {
  for (const std::byte byte : bytes) {
    if (byte > std::byte{1}) {
      return reader.Fault(subject, "a bool of 0 or 1", fmt::format("{}", static_cast<int>(byte)));
    }
  }
  return Status::Ok();
}

Result<GgufArray> ReadArray(std::string_view subject, GgufReader* reader) {
  ASSIGN_OR_RETURN(const auto type_id, reader->Read<uint32_t>(subject));
  ASSIGN_OR_RETURN(const auto count, reader->Read<uint64_t>(subject));
  GgufArray array{.element_type = static_cast<GgufType>(type_id), .count = count, .bytes = {}};
  const auto size = static_cast<uint64_t>(FixedSize(array.element_type));
  if (size == 0 && array.element_type != GgufType::kString) {
    return reader->Fault(subject, "elements of a number, bool or string type (0 to 8, 10 to 12)",
                         fmt::format("an array of type {}", type_id));
  }
  const uint64_t least_bytes = size > 0 ? size : sizeof(uint64_t);
  if (count > reader->num_left() / least_bytes) {
    return reader->Fault(subject,
                         fmt::format("at most {} elements in the rest of the file",
                                     reader->num_left() / least_bytes),
                         fmt::format("{}", count));
  }
  if (size > 0) {
    ASSIGN_OR_RETURN(array.bytes, reader->ReadBytes(count * size, subject));
    if (array.element_type == GgufType::kBool) {
      RETURN_IF_ERROR(CheckBools(array.bytes, subject, *reader));
    }
    return array;
  }
  GgufReader walk = *reader;
  for (uint64_t i = 0; i < count; ++i) RETURN_IF_ERROR(walk.ReadString(subject).status());
  ASSIGN_OR_RETURN(array.bytes, reader->ReadBytes(walk.position() - reader->position(), subject));
  return array;
}

template <class T, class Wide>
Result<GgufValue> ReadNumber(std::string_view subject, GgufReader* reader) {
  ASSIGN_OR_RETURN(const T value, reader->Read<T>(subject));
  return GgufValue(static_cast<Wide>(value));
}

Result<GgufValue> ReadValue(uint32_t type_id, std::string_view subject, GgufReader* reader) {
  switch (static_cast<GgufType>(type_id)) {
    case GgufType::kU8:
      return ReadNumber<uint8_t, uint64_t>(subject, reader);
    case GgufType::kI8:
      return ReadNumber<int8_t, int64_t>(subject, reader);
    case GgufType::kU16:
      return ReadNumber<uint16_t, uint64_t>(subject, reader);
    case GgufType::kI16:
      return ReadNumber<int16_t, int64_t>(subject, reader);
    case GgufType::kU32:
      return ReadNumber<uint32_t, uint64_t>(subject, reader);
    case GgufType::kI32:
      return ReadNumber<int32_t, int64_t>(subject, reader);
    case GgufType::kF32:
      return ReadNumber<float, double>(subject, reader);
    case GgufType::kU64:
      return ReadNumber<uint64_t, uint64_t>(subject, reader);
    case GgufType::kI64:
      return ReadNumber<int64_t, int64_t>(subject, reader);
    case GgufType::kF64:
      return ReadNumber<double, double>(subject, reader);
    case GgufType::kBool: {
      ASSIGN_OR_RETURN(const std::span<const std::byte> byte, reader->ReadBytes(1, subject));
      RETURN_IF_ERROR(CheckBools(byte, subject, *reader));
      return GgufValue(byte[0] == std::byte{1});
    }
    case GgufType::kString: {
      ASSIGN_OR_RETURN(const std::string_view text, reader->ReadString(subject));
      return GgufValue(text);
    }
    case GgufType::kArray: {
      ASSIGN_OR_RETURN(const GgufArray array, ReadArray(subject, reader));
      return GgufValue(array);
    }
  }
  return reader->Fault(subject, "a value type from 0 to 12", fmt::format("type {}", type_id));
}

}  // namespace

Status ReadGgufMetadata(uint64_t count, GgufReader* reader, GgufFile* file) {
  if (count > reader->num_left() / kMinPairBytes) {
    return reader->Fault(
        "GGUF number of keys",
        fmt::format("at most {} in the rest of the file", reader->num_left() / kMinPairBytes),
        fmt::format("{}", count));
  }
  file->metadata.reserve(static_cast<size_t>(count));
  std::unordered_set<std::string_view> seen;
  for (uint64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const std::string_view key, reader->ReadString(fmt::format("key {}", i)));
    const std::string subject = fmt::format("key {}", Quoted(key));
    if (key.empty() || !IsValidUtf8(key)) {
      return reader->Fault(subject, "a name in UTF-8", key.empty() ? "nothing" : "other bytes");
    }
    if (!seen.insert(key).second) return reader->Fault(subject, "once", "twice");
    ASSIGN_OR_RETURN(const auto type_id, reader->Read<uint32_t>(subject));
    ASSIGN_OR_RETURN(const GgufValue value, ReadValue(type_id, subject, reader));
    file->metadata.emplace_back(key, value);
  }
  return Status::Ok();
}

}  // namespace hadal
