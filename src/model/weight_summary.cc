#include "model/weight_summary.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "base/quote.h"
#include "formats/ggml_blocks.h"
#include "formats/gguf_tensors.h"
#include "model/weight_names.h"
#include "tensor/scalar.h"

namespace hadal {
namespace {

using Bytes = std::vector<std::pair<std::string, int64_t>>;

Bytes Sorted(const std::map<std::string_view, int64_t>& sums) {
  Bytes sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

Bytes BytesByDType(const Checkpoint& checkpoint) {
  std::map<std::string_view, int64_t> sums;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    sums[DTypeName(tensor.dtype)] += static_cast<int64_t>(tensor.bytes.size());
  }
  return Sorted(sums);
}

// Every name under which a checkpoint may hold the weight or a part of it, codes first.
std::vector<std::string> NamesOf(const ExpectedWeight& weight) {
  std::vector<std::string> names = {weight.name, ScaleName(weight.name)};
  constexpr std::string_view kSuffix = ".weight";
  if (weight.shape.size() != 2 || !weight.name.ends_with(kSuffix)) return names;
  const std::string module = weight.name.substr(0, weight.name.size() - kSuffix.size());
  for (const std::string_view part :
       {"weight_packed", "qweight", "weight_scale", "weight_zero_point", "weight_shape",
        "weight_g_idx", "scales", "qzeros", "g_idx", "bias"}) {
    names.push_back(fmt::format("{}.{}", module, part));
  }
  if (weight.role == WeightRole::kKvB) {
    const std::string prefix = LayerPrefix(weight.layer_idx);
    names.push_back(prefix + std::string(kSplitKeyName));
    names.push_back(prefix + std::string(kSplitValueName));
  }
  return names;
}

// Sums by part while the table is walked; what is left at the end has no role.
class PartSums {
 public:
  explicit PartSums(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  void Add(const ExpectedWeight& weight, size_t slot) {
    std::string_view type;  // of the first tensor, which holds the codes
    for (const std::string& name : NamesOf(weight)) {
      const TensorInfo* tensor = checkpoint_.Find(name);
      if (tensor == nullptr || !used_.emplace(tensor->name, true).second) continue;
      if (type.empty()) type = DTypeName(tensor->dtype);
      sums_[slot] += static_cast<int64_t>(tensor->bytes.size());
      types_[slot][type] += static_cast<int64_t>(tensor->bytes.size());
    }
  }

  void Finish(WeightSummary* summary) {
    for (const TensorInfo& tensor : checkpoint_.tensors()) {
      if (used_.contains(tensor.name)) continue;
      if (summary->num_unused++ == 0) summary->first_unused = tensor.name;
      sums_[kUnused] += static_cast<int64_t>(tensor.bytes.size());
    }
    for (size_t slot = 0; slot < sums_.size(); ++slot) {
      if (sums_[slot] == 0) continue;
      const std::string_view name = slot == kMtp ? "mtp"
                                    : slot == kUnused
                                        ? "unused"
                                        : WeightPartName(static_cast<WeightPart>(slot));
      summary->bytes_by_part.emplace_back(name, sums_[slot]);
      if (slot != kUnused) summary->types_by_part.emplace_back(name, Sorted(types_[slot]));
    }
  }

  static constexpr size_t kMtp = kNumWeightParts, kUnused = kNumWeightParts + 1;

 private:
  const Checkpoint& checkpoint_;
  std::unordered_map<std::string_view, bool> used_;  // keys lie in the checkpoint
  std::array<int64_t, kNumWeightParts + 2> sums_ = {};
  std::array<std::map<std::string_view, int64_t>, kNumWeightParts + 2> types_;
};

// The first element in which all bits of `exponent` are set: NaN or infinity. -1 when there is
// none.
template <class T>
int64_t FirstWithAllBits(std::span<const std::byte> bytes, T exponent) {
  const auto count = static_cast<int64_t>(bytes.size() / sizeof(T));
  for (int64_t i = 0; i < count; ++i) {
    T bits;
    std::memcpy(&bits, bytes.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    if ((bits & exponent) == exponent) return i;
  }
  return -1;
}

// The same for blocks, some of them at a time.
int64_t FirstNotFiniteOfBlocks(const TensorInfo& tensor) {
  constexpr size_t kBlocks = 256;
  const GgmlTypeInfo type = *FindGgmlType(tensor.dtype);
  const size_t chunk_bytes = kBlocks * static_cast<size_t>(type.block_bytes);
  std::vector<float> values;
  int64_t first = 0;
  for (size_t at = 0; at < tensor.bytes.size(); at += chunk_bytes) {
    const auto chunk = tensor.bytes.subspan(at, std::min(chunk_bytes, tensor.bytes.size() - at));
    values.resize(chunk.size() / static_cast<size_t>(type.block_bytes) *
                  static_cast<size_t>(type.block_elements));
    DecodeGgmlBlocks(type.type, chunk, values);
    const int64_t found = FirstWithAllBits<uint32_t>(std::as_bytes(std::span(values)), 0x7F800000);
    if (found >= 0) return first + found;
    first += static_cast<int64_t>(values.size());
  }
  return -1;
}

// Index of the first element that is not a finite number; -1 when there is none.
int64_t FirstNotFinite(const TensorInfo& tensor) {
  if (IsBlockType(tensor.dtype)) return FirstNotFiniteOfBlocks(tensor);
  switch (tensor.dtype) {
    case DType::kF32:
      return FirstWithAllBits<uint32_t>(tensor.bytes, 0x7F800000);
    case DType::kBF16:
      return FirstWithAllBits<uint16_t>(tensor.bytes, 0x7F80);
    case DType::kF16:
      return FirstWithAllBits<uint16_t>(tensor.bytes, 0x7C00);
    case DType::kF64:
      return FirstWithAllBits<uint64_t>(tensor.bytes, 0x7FF0000000000000);
    case DType::kF8E4M3:  // no infinities; NaN has all bits below the sign
      return FirstWithAllBits<uint8_t>(tensor.bytes, 0x7F);
    case DType::kF8E8M0:
      return FirstWithAllBits<uint8_t>(tensor.bytes, 0xFF);
    default:
      return -1;
  }
}

}  // namespace

WeightSummary SummarizeWeights(const Checkpoint& checkpoint, const ModelConfig* config) {
  WeightSummary summary;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    summary.num_bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  summary.bytes_by_dtype = BytesByDType(checkpoint);
  if (config == nullptr) return summary;
  PartSums sums(checkpoint);
  ForEachWeight(*config, [&](const ExpectedWeight& weight) {
    sums.Add(weight, static_cast<size_t>(weight.part));
  });
  if (config->num_nextn_predict_layers > 0) {
    ForEachMtpWeight(*config,
                     [&](const ExpectedWeight& weight) { sums.Add(weight, PartSums::kMtp); });
  }
  sums.Finish(&summary);
  return summary;
}

Status CheckWeightsAreFinite(const Checkpoint& checkpoint) {
  constexpr size_t kMaxListedTensors = 100;
  std::vector<std::string> faults;
  size_t count = 0;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    const int64_t element = FirstNotFinite(tensor);
    if (element < 0 || ++count > kMaxListedTensors) continue;
    faults.push_back(fmt::format("{} at element {}", Quoted(tensor.name), element));
  }
  if (count == 0) return Status::Ok();
  return Status::Corrupt(fmt::format(
      "{}: weights: expected finite numbers, found NaN or infinity in {} tensor{}: {}{}",
      checkpoint.path(), count, count == 1 ? "" : "s", fmt::join(faults, ", "),
      count > faults.size() ? fmt::format(" and {} more", count - faults.size()) : ""));
}

}  // namespace hadal
