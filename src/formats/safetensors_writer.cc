#include "formats/safetensors_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <set>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/check.h"
#include "base/json.h"
#include "base/quote.h"
#include "base/types.h"

namespace hadal {
namespace {

// Of the data in the file: a cache line.
constexpr int64_t kAlignment = 64;

Status SystemError(const std::string& path, int error) {
  return Status::Io(fmt::format("{}: {}", path, std::strerror(error)));
}

std::string PartialPath(const std::string& path) { return path + ".partial"; }

}  // namespace

Result<int64_t> SpecBytes(const SafetensorsSpec& spec, const std::string& path) {
  int64_t bits = DTypeBits(spec.dtype);
  bool fits = true;
  for (const int64_t size : spec.shape) {
    fits = fits && size >= 0 && !__builtin_mul_overflow(bits, size, &bits);
  }
  if (fits && bits % 8 == 0) return bits / 8;
  return Status::InvalidArgument(fmt::format(
      "{}: tensor {}: shape: expected sizes >= 0 of whole bytes below 2^63 bits, found [{}]", path,
      Quoted(spec.name), fmt::join(spec.shape, ", ")));
}

Result<SafetensorsWriter> SafetensorsWriter::Create(
    const std::string& path, const std::vector<SafetensorsSpec>& specs,
    const std::map<std::string, std::string>& metadata) {
  SafetensorsWriter writer;
  writer.path_ = path;
  std::set<std::string> names;
  for (const SafetensorsSpec& spec : specs) {
    if (spec.name == "__metadata__" || !names.insert(spec.name).second) {
      return Status::InvalidArgument(
          fmt::format("{}: tensor {}: name: expected a name of its own", path, Quoted(spec.name)));
    }
    ASSIGN_OR_RETURN(const int64_t num_bytes, SpecBytes(spec, path));
    writer.slots_.push_back({.name = spec.name, .num_bytes = num_bytes});
  }
  // Whole cache lines first, so that they all begin on one; then the largest element first, so that
  // every tensor is aligned to its own type; then by name.
  std::vector<size_t> order(specs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const bool is_odd_a = writer.slots_[a].num_bytes % kAlignment != 0;
    const bool is_odd_b = writer.slots_[b].num_bytes % kAlignment != 0;
    if (is_odd_a != is_odd_b) return is_odd_b;
    const int bits_a = DTypeBits(specs[a].dtype), bits_b = DTypeBits(specs[b].dtype);
    return bits_a != bits_b ? bits_a > bits_b : specs[a].name < specs[b].name;
  });

  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t offset = 0;
  for (const size_t i : order) {
    Slot& slot = writer.slots_[i];
    slot.file_offset = offset;
    if (__builtin_add_overflow(offset, slot.num_bytes, &offset)) {
      return Status::InvalidArgument(fmt::format("{}: expected at most 2^63 bytes in all", path));
    }
    header[slot.name] = {{"dtype", DTypeName(specs[i].dtype)},
                         {"shape", specs[i].shape},
                         {"data_offsets", {slot.file_offset, offset}}};
  }
  std::string text = DumpJson(header);
  text.resize(RoundUp<size_t>(text.size() + 8, kAlignment) - 8, ' ');
  std::string prefix(8, '\0');
  for (size_t i = 0; i < 8; ++i) prefix[i] = static_cast<char>(text.size() >> (8 * i) & 0xFF);
  text = prefix + text;
  for (Slot& slot : writer.slots_) slot.file_offset += static_cast<int64_t>(text.size());

  writer.fd_ = open(PartialPath(path).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (writer.fd_ < 0) return SystemError(PartialPath(path), errno);
  RETURN_IF_ERROR(writer.WriteAt(0, std::as_bytes(std::span(text))));
  return writer;
}

SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      slots_(std::move(other.slots_)) {}

SafetensorsWriter& SafetensorsWriter::operator=(SafetensorsWriter&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(slots_, other.slots_);
  return *this;
}

SafetensorsWriter::~SafetensorsWriter() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(PartialPath(path_).c_str());
}

Status SafetensorsWriter::WriteAt(int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError(PartialPath(path_), errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += written;
  }
  return Status::Ok();
}

Status SafetensorsWriter::Write(int spec_idx, int64_t first_byte,
                                std::span<const std::byte> bytes) {
  HADAL_CHECK(spec_idx >= 0 && static_cast<size_t>(spec_idx) < slots_.size());
  Slot& slot = slots_[static_cast<size_t>(spec_idx)];
  const auto count = static_cast<int64_t>(bytes.size());
  HADAL_CHECK(first_byte >= 0 && first_byte <= slot.num_bytes &&
              count <= slot.num_bytes - first_byte);
  RETURN_IF_ERROR(WriteAt(slot.file_offset + first_byte, bytes));
  slot.num_written += count;
  return Status::Ok();
}

Status SafetensorsWriter::Finish() {
  HADAL_CHECK(fd_ >= 0);
  for (const Slot& slot : slots_) {
    if (slot.num_written != slot.num_bytes) {
      return Status::InvalidArgument(fmt::format("{}: tensor {}: expected {} bytes, found {}",
                                                 path_, Quoted(slot.name), slot.num_bytes,
                                                 slot.num_written));
    }
  }
  const int fd = std::exchange(fd_, -1);
  const int error = close(fd) != 0                                                ? errno
                    : std::rename(PartialPath(path_).c_str(), path_.c_str()) != 0 ? errno
                                                                                  : 0;
  if (error == 0) return Status::Ok();
  unlink(PartialPath(path_).c_str());
  return SystemError(path_, error);
}

Status WriteSafetensors(const std::string& path, const std::vector<SafetensorsTensor>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::vector<SafetensorsSpec> specs;
  specs.reserve(tensors.size());
  for (const SafetensorsTensor& tensor : tensors) specs.push_back(tensor.spec);
  ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, specs, metadata));
  for (size_t i = 0; i < tensors.size(); ++i) {
    RETURN_IF_ERROR(writer.Write(static_cast<int>(i), 0, tensors[i].bytes));
  }
  return writer.Finish();
}

}  // namespace hadal
