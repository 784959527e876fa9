#include "formats/sharded_writer.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

#include <fmt/format.h>

namespace hadal {

Result<ShardedWriter> ShardedWriter::Create(const std::string& folder,
                                            std::vector<SafetensorsSpec> specs,
                                            int64_t shard_bytes) {
  ShardedWriter writer;
  writer.folder_ = folder;
  writer.specs_ = std::move(specs);
  ASSIGN_OR_RETURN(std::vector<ShardPlan> plans, PlanShards(folder, writer.specs_, shard_bytes));
  for (ShardPlan& plan : plans) {
    writer.total_bytes_ += plan.num_bytes;
    writer.shard_of_spec_.insert(writer.shard_of_spec_.end(), static_cast<size_t>(plan.num_specs),
                                 writer.num_shards());
    writer.shards_.emplace_back().plan = std::move(plan);
  }
  return writer;
}

Status ShardedWriter::Open(Shard* shard) {
  const auto first = specs_.begin() + shard->plan.first_spec;
  ASSIGN_OR_RETURN(
      SafetensorsWriter writer,
      SafetensorsWriter::Create(folder_ + "/" + shard->plan.name,
                                {first, first + shard->plan.num_specs}, {{"format", "pt"}}));
  shard->writer.emplace(std::move(writer));
  return Status::Ok();
}

Status ShardedWriter::Write(int spec_idx, int64_t first_byte, std::span<const std::byte> bytes) {
  Shard& shard = shards_[static_cast<size_t>(shard_of_spec_[static_cast<size_t>(spec_idx)])];
  if (!shard.writer) RETURN_IF_ERROR(Open(&shard));
  RETURN_IF_ERROR(shard.writer->Write(spec_idx - shard.plan.first_spec, first_byte, bytes));
  shard.num_written += static_cast<int64_t>(bytes.size());
  if (shard.num_written < shard.plan.num_bytes) return Status::Ok();
  RETURN_IF_ERROR(shard.writer->Finish());
  shard.writer.reset();
  return Status::Ok();
}

Status ShardedWriter::Finish() {
  for (const Shard& shard : shards_) {
    if (shard.num_written == shard.plan.num_bytes) continue;
    return Status::InvalidArgument(fmt::format("{}/{}: expected {} bytes, found {}", folder_,
                                               shard.plan.name, shard.plan.num_bytes,
                                               shard.num_written));
  }
  if (shards_.size() < 2) return Status::Ok();
  std::vector<ShardPlan> plans;
  for (const Shard& shard : shards_) plans.push_back(shard.plan);
  return WriteWholeFile(folder_ + "/model.safetensors.index.json", ShardIndexText(specs_, plans));
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
