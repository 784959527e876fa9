#include "formats/safetensors_layout.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "base/check.h"
#include "base/json.h"
#include "base/quote.h"
#include "base/types.h"

namespace hadal {
namespace {

// Of the data in the file: a cache line.
constexpr int64_t kAlignment = 64;

// Whole cache lines first, so that they all begin on one; then the largest element first, so that
// every tensor is aligned to its own type; then by name.
std::vector<size_t> FileOrder(const std::vector<SafetensorsSpec>& specs,
                              const std::vector<SafetensorsLayout::Slot>& slots) {
  std::vector<size_t> order(specs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const bool is_odd_a = slots[a].num_bytes % kAlignment != 0;
    const bool is_odd_b = slots[b].num_bytes % kAlignment != 0;
    if (is_odd_a != is_odd_b) return is_odd_b;
    const int bits_a = DTypeBits(specs[a].dtype), bits_b = DTypeBits(specs[b].dtype);
    return bits_a != bits_b ? bits_a > bits_b : specs[a].name < specs[b].name;
  });
  return order;
}

Status TooManyBytes(const std::string& path) {
  return Status::InvalidArgument(fmt::format("{}: expected at most 2^63 bytes in all", path));
}

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

Result<SafetensorsLayout> LayOutSafetensors(const std::string& path,
                                            const std::vector<SafetensorsSpec>& specs,
                                            const std::map<std::string, std::string>& metadata) {
  SafetensorsLayout layout;
  std::set<std::string> names;
  for (const SafetensorsSpec& spec : specs) {
    if (spec.name == "__metadata__" || !names.insert(spec.name).second) {
      return Status::InvalidArgument(
          fmt::format("{}: tensor {}: name: expected a name of its own", path, Quoted(spec.name)));
    }
    ASSIGN_OR_RETURN(const int64_t num_bytes, SpecBytes(spec, path));
    layout.slots.push_back({0, num_bytes});
  }
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t offset = 0;
  for (const size_t i : FileOrder(specs, layout.slots)) {
    SafetensorsLayout::Slot& slot = layout.slots[i];
    slot.file_offset = offset;
    if (__builtin_add_overflow(offset, slot.num_bytes, &offset)) return TooManyBytes(path);
    header[specs[i].name] = {{"dtype", DTypeName(specs[i].dtype)},
                             {"shape", specs[i].shape},
                             {"data_offsets", {slot.file_offset, offset}}};
  }
  std::string text = DumpJson(header);
  text.resize(RoundUp<size_t>(text.size() + 8, kAlignment) - 8, ' ');
  std::string prefix(8, '\0');
  for (size_t i = 0; i < 8; ++i) prefix[i] = static_cast<char>(text.size() >> (8 * i) & 0xFF);
  layout.header = prefix + text;
  const auto header_bytes = static_cast<int64_t>(layout.header.size());
  if (__builtin_add_overflow(offset, header_bytes, &layout.file_bytes)) return TooManyBytes(path);
  for (SafetensorsLayout::Slot& slot : layout.slots) slot.file_offset += header_bytes;
  return layout;
}

Result<std::vector<ShardPlan>> PlanShards(const std::string& folder,
                                          const std::vector<SafetensorsSpec>& specs,
                                          int64_t shard_bytes) {
  HADAL_CHECK(shard_bytes > 0);
  std::vector<ShardPlan> shards;
  int64_t total_bytes = 0;
  for (size_t i = 0; i < specs.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t num_bytes, SpecBytes(specs[i], folder));
    if (__builtin_add_overflow(total_bytes, num_bytes, &total_bytes)) return TooManyBytes(folder);
    if (shards.empty() || num_bytes > shard_bytes - shards.back().num_bytes) {
      shards.emplace_back().first_spec = static_cast<int>(i);
    }
    ++shards.back().num_specs;
    shards.back().num_bytes += num_bytes;
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    shards[i].name = shards.size() == 1
                         ? "model.safetensors"
                         : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
  }
  return shards;
}

std::string ShardIndexText(const std::vector<SafetensorsSpec>& specs,
                           const std::vector<ShardPlan>& shards) {
  int64_t total_bytes = 0;
  Json map = Json::object();
  for (const ShardPlan& shard : shards) {
    total_bytes += shard.num_bytes;
    for (int i = shard.first_spec; i < shard.first_spec + shard.num_specs; ++i) {
      map[specs[static_cast<size_t>(i)].name] = shard.name;
    }
  }
  return DumpJson({{"metadata", {{"total_size", total_bytes}}}, {"weight_map", std::move(map)}}) +
         "\n";
}

}  // namespace hadal
