#include "formats/gguf.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_set>

#include <fmt/format.h>

#include "base/check.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "formats/gguf_metadata.h"
#include "formats/gguf_reader.h"
#include "formats/tensor_info.h"

namespace hadal {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr int64_t kDefaultAlignment = 32;
constexpr uint32_t kMaxDims = 4;
constexpr uint64_t kMinTensorBytes =
    8 + 4 + 8 + 4 + 8;  // name's length, dims, a size, type, offset

Status CheckVersion(uint32_t version, const GgufReader& reader) {
  if (version == 2 || version == 3) return Status::Ok();
  const uint32_t swapped = __builtin_bswap32(version);
  const bool is_swapped = swapped == 2 || swapped == 3;
  return reader.Fault("GGUF version", "2 or 3",
                      is_swapped
                          ? fmt::format("{} in the byte order of a big-endian machine", swapped)
                          : fmt::format("{}", version));
}

Result<int64_t> ReadAlignment(const GgufFile& file, const GgufReader& reader) {
  const GgufValue* value = file.Find(kAlignmentKey);
  if (value == nullptr) return kDefaultAlignment;
  const std::optional<int64_t> alignment = value->AsInt();
  if (!alignment || *alignment <= 0 || *alignment > std::numeric_limits<int32_t>::max() ||
      !std::has_single_bit(static_cast<uint64_t>(*alignment))) {
    return reader.Fault(fmt::format("key {}", Quoted(kAlignmentKey)), "a power of two",
                        alignment ? fmt::format("{}", *alignment) : "no such integer");
  }
  return *alignment;
}

// A tensor of the table, and where it says that its data begin.
struct Described {
  GgufTensor tensor;
  uint64_t offset = 0, num_bytes = 0;
};

Status ReadSizes(std::string_view subject, GgufReader* reader, GgufTensor* tensor) {
  ASSIGN_OR_RETURN(const auto num_dims, reader->Read<uint32_t>(subject));
  if (num_dims < 1 || num_dims > kMaxDims) {
    return reader->Fault(subject, fmt::format("1 to {} sizes", kMaxDims),
                         fmt::format("{}", num_dims));
  }
  for (uint32_t i = 0; i < num_dims; ++i) {
    ASSIGN_OR_RETURN(const auto size, reader->Read<uint64_t>(subject));
    if (size > static_cast<uint64_t>(INT64_MAX)) {
      return reader->Fault(subject, "sizes below 2^63", fmt::format("{}", size));
    }
    tensor->sizes.push_back(static_cast<int64_t>(size));
  }
  return Status::Ok();
}

// Whole blocks along the fastest axis, and as many bytes as they take.
Result<uint64_t> BytesOf(const GgufTensor& tensor, std::string_view subject,
                         const GgufReader& reader) {
  const std::string found = fmt::format("{} {}", tensor.type.name, ShapeText(tensor.sizes));
  if (tensor.sizes[0] % tensor.type.block_elements != 0) {
    return reader.Fault(
        subject, fmt::format("rows of whole blocks of {}", tensor.type.block_elements), found);
  }
  uint64_t bytes = static_cast<uint64_t>(tensor.sizes[0] / tensor.type.block_elements);
  bool fits =
      !__builtin_mul_overflow(bytes, static_cast<uint64_t>(tensor.type.block_bytes), &bytes);
  uint64_t elements = static_cast<uint64_t>(tensor.sizes[0]);
  for (size_t i = 1; i < tensor.sizes.size(); ++i) {
    const auto size = static_cast<uint64_t>(tensor.sizes[i]);
    fits = fits && !__builtin_mul_overflow(bytes, size, &bytes) &&
           !__builtin_mul_overflow(elements, size, &elements);
  }
  if (!fits || bytes > static_cast<uint64_t>(INT64_MAX) ||
      elements > static_cast<uint64_t>(INT64_MAX)) {
    return reader.Fault(subject, "a size below 2^63 bytes", found);
  }
  return bytes;
}

Result<Described> ReadTensor(uint64_t index, int64_t alignment, GgufReader* reader) {
  Described described;
  GgufTensor& tensor = described.tensor;
  ASSIGN_OR_RETURN(tensor.name, reader->ReadString(fmt::format("tensor {}", index)));
  const std::string subject = fmt::format("tensor {}", Quoted(tensor.name));
  if (tensor.name.empty() || !IsValidUtf8(tensor.name)) {
    return reader->Fault(subject, "a name in UTF-8",
                         tensor.name.empty() ? "nothing" : "other bytes");
  }
  RETURN_IF_ERROR(ReadSizes(subject, reader, &tensor));
  ASSIGN_OR_RETURN(const auto type_id, reader->Read<uint32_t>(subject));
  const std::optional<GgmlTypeInfo> type = FindGgmlType(type_id);
  if (!type) {
    const std::string_view type_name = GgmlTypeName(type_id);
    return Status::Unsupported(fmt::format(
        "{}: {}: expected F32, F16, BF16, Q4_0 to Q8_0, Q2_K to Q6_K, IQ4_NL or IQ4_XS, found {}",
        reader->what(), subject,
        type_name.empty() ? fmt::format("type {}", type_id) : std::string(type_name)));
  }
  tensor.type = *type;
  ASSIGN_OR_RETURN(described.offset, reader->Read<uint64_t>(subject));
  if (described.offset % static_cast<uint64_t>(alignment) != 0) {
    return reader->Fault(subject, fmt::format("an offset that is a multiple of {}", alignment),
                         fmt::format("{}", described.offset));
  }
  ASSIGN_OR_RETURN(described.num_bytes, BytesOf(tensor, subject, *reader));
  return described;
}

Result<std::vector<Described>> ReadTable(uint64_t count, int64_t alignment, GgufReader* reader) {
  if (count > reader->num_left() / kMinTensorBytes) {
    return reader->Fault(
        "GGUF number of tensors",
        fmt::format("at most {} in the rest of the file", reader->num_left() / kMinTensorBytes),
        fmt::format("{}", count));
  }
  std::vector<Described> table;
  table.reserve(static_cast<size_t>(count));
  std::unordered_set<std::string_view> seen;
  for (uint64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(Described described, ReadTensor(i, alignment, reader));
    if (!seen.insert(described.tensor.name).second) {
      return reader->Fault(fmt::format("tensor {}", Quoted(described.tensor.name)), "once",
                           "twice");
    }
    table.push_back(std::move(described));
  }
  return table;
}

// Data must lie in the file, and no two tensors may share any.
Status CheckData(const std::vector<Described>& table, uint64_t data_bytes,
                 const GgufReader& reader) {
  std::vector<const Described*> order;
  for (const Described& described : table) {
    const std::string subject = fmt::format("tensor {}", Quoted(described.tensor.name));
    if (described.offset > data_bytes || described.num_bytes > data_bytes - described.offset) {
      return reader.Fault(
          subject, fmt::format("{} bytes at {} of the data", described.num_bytes, described.offset),
          fmt::format("{} bytes of data in the file", data_bytes));
    }
    if (described.num_bytes > 0) order.push_back(&described);
  }
  std::sort(order.begin(), order.end(),
            [](const Described* a, const Described* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const uint64_t end = order[i - 1]->offset + order[i - 1]->num_bytes;
    if (order[i]->offset < end) {
      return reader.Fault(
          fmt::format("tensor {}", Quoted(order[i]->tensor.name)),
          fmt::format("an offset from {} on, behind {}", end, Quoted(order[i - 1]->tensor.name)),
          fmt::format("{}", order[i]->offset));
    }
  }
  return Status::Ok();
}

}  // namespace

std::vector<std::string_view> GgufArray::Strings() const {
  HADAL_CHECK(element_type == GgufType::kString);
  std::vector<std::string_view> strings;
  strings.reserve(static_cast<size_t>(count));
  const std::string what;
  GgufReader reader(bytes, what);
  for (uint64_t i = 0; i < count; ++i) strings.push_back(reader.ReadString("").value());
  return strings;
}

std::optional<bool> GgufValue::AsBool() const {
  const bool* value = std::get_if<bool>(&value_);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<int64_t> GgufValue::AsInt() const {
  if (const int64_t* value = std::get_if<int64_t>(&value_)) return *value;
  const uint64_t* value = std::get_if<uint64_t>(&value_);
  if (value == nullptr || *value > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<int64_t>(*value);
}

std::optional<double> GgufValue::AsDouble() const {
  if (const double* value = std::get_if<double>(&value_)) return *value;
  if (const int64_t* value = std::get_if<int64_t>(&value_)) return static_cast<double>(*value);
  if (const uint64_t* value = std::get_if<uint64_t>(&value_)) return static_cast<double>(*value);
  return std::nullopt;
}

std::optional<std::string_view> GgufValue::AsString() const {
  const std::string_view* value = std::get_if<std::string_view>(&value_);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

int64_t GgufTensor::num_elements() const {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

const GgufValue* GgufFile::Find(std::string_view key) const {
  const auto it = std::find_if(metadata.begin(), metadata.end(),
                               [&](const auto& pair) { return pair.first == key; });
  return it == metadata.end() ? nullptr : &it->second;
}

bool IsGguf(std::span<const std::byte> file) {
  return file.size() >= kMagic.size() &&
         std::memcmp(file.data(), kMagic.data(), kMagic.size()) == 0;
}

Result<GgufFile> ParseGguf(std::span<const std::byte> file, const std::string& what) {
  GgufReader reader(file, what);
  if (!IsGguf(file)) {
    const auto* text = reinterpret_cast<const char*>(file.data());
    return reader.Fault("GGUF magic", Quoted(kMagic),
                        Quoted({text, std::min(file.size(), kMagic.size())}));
  }
  RETURN_IF_ERROR(reader.ReadBytes(kMagic.size(), "GGUF magic").status());
  GgufFile found;
  ASSIGN_OR_RETURN(found.version, reader.Read<uint32_t>("GGUF version"));
  RETURN_IF_ERROR(CheckVersion(found.version, reader));
  ASSIGN_OR_RETURN(const auto num_tensors, reader.Read<uint64_t>("GGUF number of tensors"));
  ASSIGN_OR_RETURN(const auto num_keys, reader.Read<uint64_t>("GGUF number of keys"));
  RETURN_IF_ERROR(ReadGgufMetadata(num_keys, &reader, &found));
  ASSIGN_OR_RETURN(found.alignment, ReadAlignment(found, reader));
  ASSIGN_OR_RETURN(std::vector<Described> table, ReadTable(num_tensors, found.alignment, &reader));

  const auto alignment = static_cast<size_t>(found.alignment);
  const size_t data_begin = (reader.position() + alignment - 1) / alignment * alignment;
  found.data_begin = static_cast<int64_t>(data_begin);
  // A file without data may end before the padding.
  const auto data = file.subspan(std::min(data_begin, file.size()));
  RETURN_IF_ERROR(CheckData(table, data.size(), reader));
  found.tensors.reserve(table.size());
  for (Described& described : table) {
    described.tensor.bytes = data.subspan(static_cast<size_t>(described.offset),
                                          static_cast<size_t>(described.num_bytes));
    found.tensors.push_back(std::move(described.tensor));
  }
  return found;
}

}  // namespace hadal
