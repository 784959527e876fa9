#include "model/weight_summary.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "base/quote.h"
#include "model/weight_names.h"
#include "tensor/scalar.h"

namespace hadal {
namespace {

using Bytes = std::vector<std::pair<std::string, int64_t>>;

Bytes BytesByDType(const Checkpoint& checkpoint) {
  std::map<std::string_view, int64_t> sums;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    sums[DTypeName(tensor.dtype)] += static_cast<int64_t>(tensor.bytes.size());
  }
  Bytes sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

// Sums by part while the table is walked; what is left at the end has no role.
class PartSums {
 public:
  explicit PartSums(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  void Add(const ExpectedWeight& weight, size_t slot) {
    for (const std::string& name : {weight.name, ScaleName(weight.name)}) {
      const TensorInfo* tensor = checkpoint_.Find(name);
      if (tensor == nullptr || !used_.emplace(tensor->name, true).second) continue;
      sums_[slot] += static_cast<int64_t>(tensor->bytes.size());
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
    }
  }

  static constexpr size_t kMtp = kNumWeightParts, kUnused = kNumWeightParts + 1;

 private:
  const Checkpoint& checkpoint_;
  std::unordered_map<std::string_view, bool> used_;  // keys lie in the checkpoint
  std::array<int64_t, kNumWeightParts + 2> sums_ = {};
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

// Index of the first element that is not a finite number; -1 when there is none.
int64_t FirstNotFinite(const TensorInfo& tensor) {
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
  constexpr size_t kMaxListed = 100;
  std::vector<std::string> faults;
  size_t count = 0;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    const int64_t element = FirstNotFinite(tensor);
    if (element < 0 || ++count > kMaxListed) continue;
    faults.push_back(fmt::format("{} at element {}", Quoted(tensor.name), element));
  }
  if (count == 0) return Status::Ok();
  return Status::Corrupt(fmt::format(
      "{}: weights: expected finite numbers, found NaN or infinity in {} tensor{}: {}{}",
      checkpoint.path(), count, count == 1 ? "" : "s", fmt::join(faults, ", "),
      count > faults.size() ? fmt::format(" and {} more", count - faults.size()) : ""));
}

}  // namespace hadal
