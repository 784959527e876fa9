#include "formats/safetensors_writer.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/check.h"
#include "base/quote.h"

namespace hadal {
namespace {

Status SystemError(const std::string& path, int error) {
  return Status::Io(fmt::format("{}: {}", path, std::strerror(error)));
}

std::string PartialPath(const std::string& path) { return path + ".partial"; }

}  // namespace

Result<SafetensorsWriter> SafetensorsWriter::Create(
    const std::string& path, const std::vector<SafetensorsSpec>& specs,
    const std::map<std::string, std::string>& metadata) {
  SafetensorsWriter writer;
  writer.path_ = path;
  ASSIGN_OR_RETURN(const SafetensorsLayout layout, LayOutSafetensors(path, specs, metadata));
  for (size_t i = 0; i < specs.size(); ++i) {
    writer.slots_.push_back({.name = specs[i].name,
                             .file_offset = layout.slots[i].file_offset,
                             .num_bytes = layout.slots[i].num_bytes});
  }
  writer.fd_ = open(PartialPath(path).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (writer.fd_ < 0) return SystemError(PartialPath(path), errno);
  RETURN_IF_ERROR(writer.WriteAt(0, std::as_bytes(std::span(layout.header))));
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
