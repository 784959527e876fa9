#include "formats/sharded_writer.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/json.h"

namespace hadal {

Result<ShardedWriter> ShardedWriter::Create(const std::string& folder,
                                            std::vector<SafetensorsSpec> specs,
                                            int64_t shard_bytes) {
  HADAL_CHECK(shard_bytes > 0);
  ShardedWriter writer;
  writer.folder_ = folder;
  writer.specs_ = std::move(specs);
  RETURN_IF_ERROR(writer.Plan(shard_bytes));
  return writer;
}

Status ShardedWriter::Plan(int64_t shard_bytes) {
  for (size_t i = 0; i < specs_.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t num_bytes, SpecBytes(specs_[i], folder_));
    if (shards_.empty() || num_bytes > shard_bytes - shards_.back().num_bytes) {
      shards_.emplace_back().first_spec = static_cast<int>(i);
    }
    ++shards_.back().num_specs;
    shards_.back().num_bytes += num_bytes;
    shard_of_spec_.push_back(num_shards() - 1);
    if (__builtin_add_overflow(total_bytes_, num_bytes, &total_bytes_)) {
      return Status::InvalidArgument(
          fmt::format("{}: expected at most 2^63 bytes in all", folder_));
    }
  }
  for (size_t i = 0; i < shards_.size(); ++i) {
    shards_[i].name = shards_.size() == 1
                          ? "model.safetensors"
                          : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards_.size());
  }
  return Status::Ok();
}

Status ShardedWriter::Open(Shard* shard) {
  const auto first = specs_.begin() + shard->first_spec;
  ASSIGN_OR_RETURN(
      SafetensorsWriter writer,
      SafetensorsWriter::Create(folder_ + "/" + shard->name, {first, first + shard->num_specs},
                                {{"format", "pt"}}));
  shard->writer.emplace(std::move(writer));
  return Status::Ok();
}

Status ShardedWriter::Write(int spec_idx, int64_t first_byte, std::span<const std::byte> bytes) {
  Shard& shard = shards_[static_cast<size_t>(shard_of_spec_[static_cast<size_t>(spec_idx)])];
  if (!shard.writer) RETURN_IF_ERROR(Open(&shard));
  RETURN_IF_ERROR(shard.writer->Write(spec_idx - shard.first_spec, first_byte, bytes));
  shard.num_written += static_cast<int64_t>(bytes.size());
  if (shard.num_written < shard.num_bytes) return Status::Ok();
  RETURN_IF_ERROR(shard.writer->Finish());
  shard.writer.reset();
  return Status::Ok();
}

Status ShardedWriter::Finish() {
  for (const Shard& shard : shards_) {
    if (shard.num_written == shard.num_bytes) continue;
    return Status::InvalidArgument(fmt::format("{}/{}: expected {} bytes, found {}", folder_,
                                               shard.name, shard.num_bytes, shard.num_written));
  }
  if (shards_.size() < 2) return Status::Ok();
  Json index = {{"metadata", {{"total_size", total_bytes_}}}, {"weight_map", Json::object()}};
  for (size_t i = 0; i < specs_.size(); ++i) {
    index["weight_map"][specs_[i].name] = shards_[static_cast<size_t>(shard_of_spec_[i])].name;
  }
  return WriteWholeFile(folder_ + "/model.safetensors.index.json", DumpJson(index) + "\n");
}

Status WriteWholeFile(const std::string& path, std::string_view content) {
  const std::string partial = path + ".partial";
  std::ofstream file(partial, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  if (file.good() && std::rename(partial.c_str(), path.c_str()) == 0) return Status::Ok();
  const int error = errno;
  std::remove(partial.c_str());
  return Status::Io(fmt::format("{}: {}", path, std::strerror(error)));
}

}  // namespace hadal
