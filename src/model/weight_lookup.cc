#include "model/weight_lookup.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/quote.h"
#include "formats/ggml_blocks.h"
#include "formats/gguf_tensors.h"
#include "tensor/group_tiles.h"

namespace hadal {
namespace {

constexpr size_t kMaxListed = 100;  // names in the message; V3 has 90,000 tensors

// Faults of one kind: how many there are, and the first of them.
class FaultList {
 public:
  explicit FaultList(std::string_view kind) : kind_(kind) {}
  void Add(std::string fault) {
    if (++count_ <= kMaxListed) shown_.push_back(std::move(fault));
  }
  size_t count() const { return count_; }
  // "; 3 missing: a, b, c"; empty without faults.
  std::string Text() const {
    if (count_ == 0) return {};
    std::string text = fmt::format("; {} {}: {}", count_, kind_, fmt::join(shown_, ", "));
    if (count_ > shown_.size()) text += fmt::format(" and {} more", count_ - shown_.size());
    return text;
  }

 private:
  std::string_view kind_;
  size_t count_ = 0;
  std::vector<std::string> shown_;
};

// Names that tell of a layout that we do not read. Specification, 2.8.
std::string_view OtherLayout(const Checkpoint& checkpoint) {
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    const std::string_view name = tensor.name;
    if (name.ends_with(".attn.wkv_a.weight")) return "DeepSeek's converted demo layout";
  }
  return {};
}

static_assert(static_cast<int>(DType::kIq4Xs) - static_cast<int>(DType::kQ4_0) ==
              static_cast<int>(QuantFormat::kIq4Xs) - static_cast<int>(QuantFormat::kQ4_0));
QuantFormat FormatOfBlocks(DType dtype) {
  return static_cast<QuantFormat>(static_cast<int>(QuantFormat::kQ4_0) + static_cast<int>(dtype) -
                                  static_cast<int>(DType::kQ4_0));
}

class Lookup {
 public:
  Lookup(const Checkpoint& checkpoint, const ModelConfig& config)
      : checkpoint_(checkpoint), config_(config) {}

  Result<FoundWeights> Run() {
    ForEachWeight(config_, [this](const ExpectedWeight& weight) { Look(weight); });
    if (HasMtp()) {
      found_.has_mtp = true;
      ForEachMtpWeight(config_, [this](const ExpectedWeight& weight) { Look(weight); });
    }
    RETURN_IF_ERROR(packed_fault_);
    if (missing_.count() + misshapen_.count() + unreadable_.count() == 0) return std::move(found_);
    return Fault();
  }

 private:
  // A checkpoint may leave the whole layer out; a part of it is a fault. Specification, 2.6.
  bool HasMtp() const {
    if (config_.num_nextn_predict_layers == 0) return false;
    const std::string prefix = LayerPrefix(config_.num_hidden_layers);
    const auto tensors = checkpoint_.tensors();
    const auto first = std::lower_bound(
        tensors.begin(), tensors.end(), prefix,
        [](const TensorInfo& tensor, const std::string& text) { return tensor.name < text; });
    return first != tensors.end() && first->name.starts_with(prefix);
  }

  void Look(const ExpectedWeight& weight) {
    ++num_expected_;
    if (LookForPacked(weight)) return;
    const TensorInfo* tensor = checkpoint_.Find(weight.name);
    if (tensor == nullptr && weight.role == WeightRole::kKvB && LookAtHalves(weight)) return;
    if (tensor == nullptr) {
      if (!weight.has_fallback) missing_.Add(Quoted(weight.name) + " " + ShapeText(weight.shape));
      return;
    }
    const bool is_matrix = weight.shape.size() == 2;
    FoundWeight entry = {.name = weight.name,
                         .role = weight.role,
                         .layer_idx = weight.layer_idx,
                         .expert_idx = weight.expert_idx,
                         .tensor = tensor,
                         .group_shape = {}};
    if (is_matrix) {
      entry.rows = static_cast<int>(weight.shape[0]);
      entry.cols = static_cast<int>(weight.shape[1]);
    }
    if (config_.has_grouped_weights && tensor->dtype == DType::kU8 && is_matrix) {
      return LookAtTiles(weight, &entry);
    }
    if (tensor->shape != weight.shape) {
      misshapen_.Add(fmt::format("{}: expected {}, found {} in {}", Quoted(weight.name),
                                 ShapeText(weight.shape), ShapeText(tensor->shape),
                                 FileName(*tensor)));
      return;
    }
    if (ReadFormat(weight, is_matrix, &entry)) found_.weights.push_back(entry);
  }

  // False when the matrix is not packed; a fault of one that is is noted.
  bool LookForPacked(const ExpectedWeight& weight) {
    constexpr std::string_view kSuffix = ".weight";
    if (config_.packed_scheme.method == PackedMethod::kNone || weight.shape.size() != 2) {
      return false;
    }
    const std::string module = weight.name.substr(0, weight.name.size() - kSuffix.size());
    Result<std::optional<PackedWeight>> packed = FindPackedWeight(
        checkpoint_, config_.packed_scheme, module, weight.shape[0], weight.shape[1]);
    if (!packed.ok()) {
      if (packed_fault_.ok()) packed_fault_ = packed.status();
      return true;
    }
    if (!*packed) return false;
    found_.weights.push_back({.name = weight.name,
                              .role = weight.role,
                              .layer_idx = weight.layer_idx,
                              .expert_idx = weight.expert_idx,
                              .tensor = nullptr,
                              .group_shape = {},
                              .rows = static_cast<int>(weight.shape[0]),
                              .cols = static_cast<int>(weight.shape[1]),
                              .packed = std::make_shared<PackedWeight>(**packed)});
    return true;
  }

  // False when there are no halves; faults of those that are there are noted.
  bool LookAtHalves(const ExpectedWeight& weight) {
    const std::string prefix = LayerPrefix(weight.layer_idx);
    const TensorInfo* key = checkpoint_.Find(prefix + std::string(kSplitKeyName));
    const TensorInfo* value = checkpoint_.Find(prefix + std::string(kSplitValueName));
    if (key == nullptr || value == nullptr) return false;
    const int64_t heads = config_.num_attention_heads, rank = config_.kv_lora_rank;
    // Both are looked at, so that the faults of both are told.
    const bool is_key_sound = CheckHalf(*key, {heads, rank, config_.qk_nope_head_dim});
    const bool is_value_sound = CheckHalf(*value, {heads, config_.v_head_dim, rank});
    if (!is_key_sound || !is_value_sound) return true;
    found_.weights.push_back({.name = weight.name,
                              .role = weight.role,
                              .layer_idx = weight.layer_idx,
                              .tensor = nullptr,
                              .group_shape = {},
                              .rows = static_cast<int>(weight.shape[0]),
                              .cols = static_cast<int>(weight.shape[1]),
                              .split_key = key,
                              .split_value = value});
    return true;
  }

  // Some writers join the heads' rows into one axis; the bytes are the same.
  bool CheckHalf(const TensorInfo& tensor, const std::vector<int64_t>& shape) {
    const std::vector<int64_t> joined = {shape[0] * shape[1], shape[2]};
    if (tensor.shape != shape && tensor.shape != joined) {
      misshapen_.Add(fmt::format("{}: expected {}, found {} in {}", Quoted(tensor.name),
                                 ShapeText(shape), ShapeText(tensor.shape), FileName(tensor)));
      return false;
    }
    if (FindGgmlType(tensor.dtype)) return true;
    unreadable_.Add(fmt::format("{}: expected a type of GGUF, found {} in {}", Quoted(tensor.name),
                                DTypeName(tensor.dtype), FileName(tensor)));
    return false;
  }

  // A grouped matrix is stored as [tiles, bytes of a tile]; the width of a tile tells its format.
  void LookAtTiles(const ExpectedWeight& weight, FoundWeight* entry) {
    const std::vector<int64_t>& shape = entry->tensor->shape;
    const std::optional<GroupShape> group_shape =
        shape.size() == 2 && shape[0] == NumTiles(entry->rows) ? ShapeOfTiles(entry->cols, shape[1])
                                                               : std::nullopt;
    if (!group_shape) {
      misshapen_.Add(fmt::format(
          "{}: expected {} as [{}, bytes of a tile of a grouped format], found {} in {}",
          Quoted(weight.name), ShapeText(weight.shape), NumTiles(entry->rows), ShapeText(shape),
          FileName(*entry->tensor)));
      return;
    }
    // Its rows are taken head by head, and a head must begin a tile.
    if (weight.role == WeightRole::kKvB &&
        (config_.qk_nope_head_dim % kTileRows != 0 || config_.v_head_dim % kTileRows != 0)) {
      unreadable_.Add(fmt::format(
          "{}: expected F32, BF16, F16 or F8_E4M3, since heads of {} + {} rows cut tiles of {}, "
          "found a grouped format in {}",
          Quoted(weight.name), config_.qk_nope_head_dim, config_.v_head_dim, kTileRows,
          FileName(*entry->tensor)));
      return;
    }
    entry->format = group_shape->format;
    entry->group_shape = *group_shape;
    found_.weights.push_back(*entry);
  }

  // False, with a fault noted, when the type cannot be read.
  bool ReadFormat(const ExpectedWeight& weight, bool is_matrix, FoundWeight* entry) {
    if (is_matrix && IsBlockType(entry->tensor->dtype)) {
      entry->format = FormatOfBlocks(entry->tensor->dtype);
      return true;
    }
    switch (entry->tensor->dtype) {
      case DType::kF32:
        entry->format = QuantFormat::kF32;
        return true;
      case DType::kBF16:
        entry->format = QuantFormat::kBF16;
        return true;
      case DType::kF16:
        entry->format = QuantFormat::kF16;
        return true;
      case DType::kF8E4M3:
      case DType::kU8:  // the same bytes in files repacked by others; specification, 1.3
        entry->format = QuantFormat::kF8Block128;
        if (is_matrix) return FindScales(weight, entry);
        break;
      default:
        break;
    }
    unreadable_.Add(fmt::format("{}: expected {}, found {} in {}", Quoted(weight.name),
                                is_matrix ? "F32, BF16, F16 or F8_E4M3" : "F32, BF16 or F16",
                                DTypeName(entry->tensor->dtype), FileName(*entry->tensor)));
    return false;
  }

  bool FindScales(const ExpectedWeight& weight, FoundWeight* entry) {
    const std::string name = ScaleName(weight.name);
    const std::vector<int64_t> shape = ScaleShape(weight.shape);
    const TensorInfo* scales = checkpoint_.Find(name);
    if (scales == nullptr) {
      missing_.Add(Quoted(name) + " " + ShapeText(shape));
      return false;
    }
    if (scales->shape != shape) {
      misshapen_.Add(fmt::format("{}: expected {}, found {} in {}", Quoted(name), ShapeText(shape),
                                 ShapeText(scales->shape), FileName(*scales)));
      return false;
    }
    // Narrower types are held exactly by float32.
    if (scales->dtype != DType::kF32 && scales->dtype != DType::kBF16 &&
        scales->dtype != DType::kF16 && scales->dtype != DType::kF8E8M0) {
      unreadable_.Add(fmt::format("{}: expected F32, BF16, F16 or F8_E8M0, found {} in {}",
                                  Quoted(name), DTypeName(scales->dtype), FileName(*scales)));
      return false;
    }
    entry->scales = scales;
    return true;
  }

  std::string FileName(const TensorInfo& tensor) const {
    const std::string& path = checkpoint_.files()[static_cast<size_t>(tensor.file_idx)];
    return std::filesystem::path(path).filename().string();
  }

  Status Fault() const {
    std::string message = fmt::format(
        "{}: weights: expected {} tensors for {} layers of {}, found {} tensors in {} {}{}{}{}",
        checkpoint_.path(), num_expected_, config_.num_hidden_layers, config_.model_type,
        checkpoint_.tensors().size(), checkpoint_.files().size(),
        checkpoint_.files().size() == 1 ? "file" : "files", missing_.Text(), misshapen_.Text(),
        unreadable_.Text());
    const std::string_view layout = OtherLayout(checkpoint_);
    if (layout.empty()) return Status::Corrupt(std::move(message));
    return Status::Unsupported(
        fmt::format("{}: weights: expected the published layout in F32, BF16, F16 or FP8, found "
                    "{}, which is not "
                    "supported",
                    checkpoint_.path(), layout));
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  FoundWeights found_;
  size_t num_expected_ = 0;
  Status packed_fault_;
  FaultList missing_{"missing"}, misshapen_{"of another shape"}, unreadable_{"of another type"};
};

}  // namespace

Result<FoundWeights> FindWeights(const Checkpoint& checkpoint, const ModelConfig& config) {
  return Lookup(checkpoint, config).Run();
}

}  // namespace hadal
