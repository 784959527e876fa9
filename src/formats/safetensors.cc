#include "formats/safetensors.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/quote.h"
#include "formats/dom_text.h"

namespace hadal {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxDepth = 64;  // the format needs three levels

// A tensor as the header describes it, before its span is known to lie in the file.
struct Entry {
  std::string_view name;  // into the parsed header
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes, from the start of the data
};

// An error about one tensor of one file.
Status TensorError(const std::string& what, std::string_view name, const std::string& message) {
  return Status::Corrupt(fmt::format("{}: tensor {}: {}", what, Quoted(name), message));
}

// The header's text. Its length comes from the file, so it is compared before it is added to.
Result<std::string_view> HeaderText(std::span<const std::byte> file, const std::string& what) {
  if (file.size() < kLengthBytes) {
    return Status::Corrupt(
        fmt::format("{}: safetensors length prefix: expected {} bytes, found a file of {} bytes",
                    what, kLengthBytes, file.size()));
  }
  uint64_t header_bytes = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    header_bytes |= static_cast<uint64_t>(file[i]) << (8 * i);
  }
  const uint64_t most = std::min<uint64_t>(kMaxHeaderBytes, file.size() - kLengthBytes);
  if (header_bytes > most) {
    return Status::Corrupt(
        fmt::format("{}: safetensors header length: expected at most {} bytes in a file of {}, "
                    "found {}",
                    what, most, file.size(), header_bytes));
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes,
                              static_cast<size_t>(header_bytes));
  if (text.empty() || text.front() != '{') {
    return Status::Corrupt(
        fmt::format("{}: safetensors header: expected a JSON object that begins with {{, found {}",
                    what, text.empty() ? "nothing" : Quoted(text, 20)));
  }
  return text;
}

// The three values of a tensor's object; each must be there once.
struct Fields {
  std::optional<dom::element> dtype, shape, data_offsets;
};

Result<Fields> ReadFields(std::string_view name, dom::element value, const std::string& what) {
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) {
    return TensorError(what, name,
                       fmt::format("expected a JSON object, found {}", ShownValue(value)));
  }
  Fields fields;
  for (const auto field : object) {
    std::optional<dom::element>* slot = nullptr;
    if (field.key == "dtype") slot = &fields.dtype;
    if (field.key == "shape") slot = &fields.shape;
    if (field.key == "data_offsets") slot = &fields.data_offsets;
    if (slot == nullptr) continue;  // later versions of the format may say more
    if (slot->has_value()) {
      return TensorError(what, name,
                         fmt::format("key {}: expected once, found twice", Quoted(field.key)));
    }
    *slot = field.value;
  }
  const char* missing = !fields.dtype          ? "dtype"
                        : !fields.shape        ? "shape"
                        : !fields.data_offsets ? "data_offsets"
                                               : nullptr;
  if (missing != nullptr) {
    return TensorError(what, name, fmt::format("{}: expected a value, found nothing", missing));
  }
  return fields;
}

Status ReadDType(const Fields& fields, const std::string& what, Entry* entry) {
  std::string_view text;
  std::optional<DType> dtype;
  if (fields.dtype->get(text) == simdjson::SUCCESS) dtype = ParseDType(text);
  if (!dtype) {
    return TensorError(what, entry->name,
                       fmt::format("dtype: expected one of the safetensors types, found {}",
                                   ShownValue(*fields.dtype)));
  }
  entry->dtype = *dtype;
  return Status::Ok();
}

Status ReadShape(const Fields& fields, const std::string& what, Entry* entry) {
  const auto fault = [&] {
    return TensorError(what, entry->name,
                       fmt::format("shape: expected a list of non-negative integers, found {}",
                                   ShownValue(*fields.shape)));
  };
  dom::array sizes;
  if (fields.shape->get(sizes) != simdjson::SUCCESS) return fault();
  entry->shape.reserve(sizes.size());
  for (const dom::element size : sizes) {
    int64_t value = 0;
    if (size.get(value) != simdjson::SUCCESS || value < 0) return fault();
    entry->shape.push_back(value);
  }
  return Status::Ok();
}

Status ReadOffsets(const Fields& fields, const std::string& what, Entry* entry) {
  dom::array offsets;
  uint64_t values[2] = {0, 0};
  bool is_pair = fields.data_offsets->get(offsets) == simdjson::SUCCESS && offsets.size() == 2;
  for (size_t i = 0; is_pair && i < 2; ++i) {
    is_pair = offsets.at(i).get(values[i]) == simdjson::SUCCESS;
  }
  if (!is_pair || values[0] > values[1]) {
    return TensorError(
        what, entry->name,
        fmt::format("data_offsets: expected [begin, end] with 0 <= begin <= end, found {}",
                    ShownValue(*fields.data_offsets)));
  }
  entry->begin = values[0];
  entry->end = values[1];
  return Status::Ok();
}

// The span must hold exactly what dtype and shape ask for.
Status CheckSpan(const std::string& what, const Entry& entry) {
  uint64_t bits = static_cast<uint64_t>(DTypeBits(entry.dtype));
  bool fits = true;
  for (const int64_t size : entry.shape) {
    fits = fits && !__builtin_mul_overflow(bits, static_cast<uint64_t>(size), &bits);
  }
  const std::string type = fmt::format("{} {}", DTypeName(entry.dtype), ShapeText(entry.shape));
  if (!fits || bits > static_cast<uint64_t>(INT64_MAX)) {
    return TensorError(what, entry.name,
                       fmt::format("shape: expected a size below 2^63 bits, found {}", type));
  }
  if (bits % 8 != 0) {
    return TensorError(what, entry.name,
                       fmt::format("shape: expected whole bytes, found {} bits of {}", bits, type));
  }
  if (entry.end - entry.begin != bits / 8) {
    return TensorError(
        what, entry.name,
        fmt::format("data_offsets: expected {} bytes for {}, found {} [{}, {}]", bits / 8, type,
                    entry.end - entry.begin, entry.begin, entry.end));
  }
  return Status::Ok();
}

Status CheckMetadata(dom::element value, const std::string& what) {
  dom::object object;
  bool is_sound = value.get(object) == simdjson::SUCCESS;
  if (is_sound) {
    for (const auto field : object) is_sound = is_sound && field.value.is_string();
  }
  if (is_sound) return Status::Ok();
  return Status::Corrupt(
      fmt::format("{}: safetensors __metadata__: expected an object of strings, found {}", what,
                  ShownValue(value)));
}

Result<std::vector<Entry>> ReadEntries(dom::object header, const std::string& what) {
  std::vector<Entry> entries;
  entries.reserve(header.size());
  std::unordered_set<std::string_view> names;
  for (const auto field : header) {
    if (!names.insert(field.key).second) {
      return TensorError(what, field.key, "name: expected once in the header, found twice");
    }
    if (field.key == "__metadata__") {
      RETURN_IF_ERROR(CheckMetadata(field.value, what));
      continue;
    }
    Entry entry;
    entry.name = field.key;
    ASSIGN_OR_RETURN(const Fields fields, ReadFields(field.key, field.value, what));
    RETURN_IF_ERROR(ReadDType(fields, what, &entry));
    RETURN_IF_ERROR(ReadShape(fields, what, &entry));
    RETURN_IF_ERROR(ReadOffsets(fields, what, &entry));
    RETURN_IF_ERROR(CheckSpan(what, entry));
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Sorted by offset, the spans must tile [0, data_bytes).
Status CheckTiling(const std::vector<Entry>& entries, uint64_t data_bytes,
                   const std::string& what) {
  std::vector<const Entry*> order;
  order.reserve(entries.size());
  for (const Entry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t covered = 0;
  for (const Entry* entry : order) {
    if (entry->end > data_bytes) {
      return TensorError(
          what, entry->name,
          fmt::format("data_offsets: expected an end of at most {} (the file's data), found {}",
                      data_bytes, entry->end));
    }
    if (entry->begin != covered) {
      return TensorError(
          what, entry->name,
          fmt::format("data_offsets: expected tensors without {}, so begin {}, "
                      "found {}",
                      entry->begin < covered ? "overlap" : "holes", covered, entry->begin));
    }
    covered = entry->end;
  }
  if (covered != data_bytes) {
    return Status::Corrupt(
        fmt::format("{}: safetensors data: expected to end with the last tensor at byte {}, found "
                    "{} bytes after it",
                    what, covered, data_bytes - covered));
  }
  return Status::Ok();
}

}  // namespace

Result<std::vector<TensorInfo>> ParseSafetensors(std::span<const std::byte> file,
                                                 const std::string& what) {
  ASSIGN_OR_RETURN(const std::string_view text, HeaderText(file, what));
  const simdjson::padded_string padded(text);  // the parser reads past the end of its input
  dom::parser parser;
  dom::object header;
  simdjson::error_code error = parser.allocate(padded.size(), kMaxDepth);
  if (error == simdjson::SUCCESS) error = parser.parse(padded).get(header);
  if (error != simdjson::SUCCESS) {
    return Status::Corrupt(fmt::format("{}: safetensors header: expected a JSON object, found: {}",
                                       what, simdjson::error_message(error)));
  }
  ASSIGN_OR_RETURN(std::vector<Entry> entries, ReadEntries(header, what));
  const std::span<const std::byte> data = file.subspan(kLengthBytes + text.size());
  RETURN_IF_ERROR(CheckTiling(entries, data.size(), what));

  std::vector<TensorInfo> tensors;
  tensors.reserve(entries.size());
  for (Entry& entry : entries) {
    TensorInfo& tensor = tensors.emplace_back();
    tensor.name = entry.name;
    tensor.dtype = entry.dtype;
    tensor.shape = std::move(entry.shape);
    tensor.bytes = data.subspan(static_cast<size_t>(entry.begin),
                                static_cast<size_t>(entry.end - entry.begin));
  }
  return tensors;
}

}  // namespace hadal
