#include "formats/checksum_file.h"

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/json.h"
#include "base/quote.h"
#include "sys/mapped_file.h"

namespace hadal {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 28;

}  // namespace

std::string ChecksumHex(std::span<const std::byte> bytes) {
  return fmt::format("{:016x}", Checksum(bytes));
}

Status VerifyChecksums(const Checkpoint& checkpoint) {
  const std::string path = checkpoint.folder() + "/" + kChecksumFile;
  const Result<std::string> text = ReadFile(path, kMaxBytes);
  if (text.status().code() == StatusCode::kNotFound) return Status::Ok();
  RETURN_IF_ERROR(text.status());
  ASSIGN_OR_RETURN(const Json json, ParseJson(text.value(), path));
  ASSIGN_OR_RETURN(const std::string algorithm, ReadString(json, "algorithm", path));
  if (algorithm != kChecksumAlgorithm) {
    return Status::Unsupported(fmt::format("{}: algorithm: expected {}, found {}", path,
                                           kChecksumAlgorithm, Quoted(algorithm)));
  }
  if (!HasValue(json, "tensors") || !json["tensors"].is_object()) {
    return Status::Corrupt(fmt::format("{}: tensors: expected a JSON object", path));
  }
  for (const auto& [name, expected] : json["tensors"].items()) {
    const TensorInfo* tensor = checkpoint.Find(name);
    const std::string found = tensor == nullptr ? "no such tensor" : ChecksumHex(tensor->bytes);
    if (expected.is_string() && expected.get_ref<const std::string&>() == found) continue;
    return Status::Corrupt(fmt::format("{}: tensor {}: checksum: expected {}, found {}",
                                       checkpoint.path(), Quoted(name),
                                       Quoted(DumpJson(expected), 40), found));
  }
  return Status::Ok();
}

}  // namespace hadal
