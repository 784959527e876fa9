#include "convert/convert_plan.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/quote.h"
#include "formats/block_tiles.h"
#include "model/weight_formats.h"
#include "tensor/group_tiles.h"

namespace hadal {
namespace {

std::string ShapeName(const GroupShape& shape) {
  return fmt::format("{}, groups of {}{}",
                     shape.format == QuantFormat::kInt4Group ? "int4" : "int8", shape.group_size,
                     shape.has_zero_points ? " with zero points" : "");
}

std::string PackedName(const PackedWeight& packed) {
  return fmt::format("packed {}-bit codes{}", packed.bits,
                     packed.group_of_col != nullptr ? " in the order of activations" : "");
}

// What a matrix that no format holds exactly is rounded to: as many bits as it has, or more.
GroupShape RoundedShape(DType dtype) {
  switch (dtype) {
    case DType::kQ2_K:
    case DType::kQ3_K:
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ4_K:
    case DType::kIq4Nl:
    case DType::kIq4Xs:
      return {QuantFormat::kInt4Group, 32, true};
    default:
      return {QuantFormat::kInt8Group, 32, false};
  }
}

class ConvertPlanner {
 public:
  ConvertPlanner(const Checkpoint& checkpoint, bool may_requantize, WeightUnpacker* unpacker)
      : checkpoint_(checkpoint), may_requantize_(may_requantize), unpacker_(unpacker) {}

  using Action = ConvertItem::Action;

  Status Add(const FoundWeight& found) {
    ConvertItem item;
    item.name = found.name;
    item.source = found;
    item.rows = found.rows;
    item.cols = found.cols;
    NoteUse(found);
    if (found.packed != nullptr) {
      RETURN_IF_ERROR(PlanPacked(*found.packed, &item));
    } else if (found.split_key != nullptr) {
      item.action = Action::kFloats;
      item.what = fmt::format("{} and {} -> F32", DTypeName(found.split_key->dtype),
                              DTypeName(found.split_value->dtype));
    } else if (IsBlockType(found.tensor->dtype)) {
      PlanBlocks(found.tensor->dtype, &item);
    } else {
      item.what = fmt::format("{} as it is", DTypeName(found.tensor->dtype));
    }
    AddSpecs(&item);
    if (!item.is_exact() && num_inexact_++ == 0) first_inexact_ = item;
    plan_.items.push_back(std::move(item));
    return Status::Ok();
  }

  Result<ConvertPlan> Take() {
    if (num_inexact_ > 0 && !may_requantize_) {
      return Status::Unsupported(fmt::format(
          "{}: conversion: expected values that hadal's formats hold exactly, found {} tensors "
          "with others, the first {} ({}); --requantize rounds them",
          checkpoint_.path(), num_inexact_, Quoted(first_inexact_.name), first_inexact_.what));
    }
    for (const TensorInfo& tensor : checkpoint_.tensors()) {
      if (!used_.contains(&tensor)) plan_.dropped.push_back(tensor.name);
    }
    return std::move(plan_);
  }

 private:
  void NoteUse(const FoundWeight& found) {
    used_.insert({found.tensor, found.scales, found.split_key, found.split_value});
    if (found.packed != nullptr) {
      used_.insert({found.packed->codes, found.packed->scales, found.packed->zeros,
                    found.packed->group_of_col});
    }
  }

  Status PlanPacked(const PackedWeight& packed, ConvertItem* item) {
    const std::string from = PackedName(packed);
    if (!CanBeGrouped(item->source.role, item->cols)) {
      item->action = Action::kFloats;
      item->what = from + " -> F32";
      return Status::Ok();
    }
    ASSIGN_OR_RETURN(const std::optional<GroupShape> exact, unpacker_->FindExactTiles(packed));
    item->action = exact ? Action::kTiles : Action::kRound;
    item->shape = exact.value_or(GroupShape{QuantFormat::kInt8Group, 32, false});
    item->what = fmt::format("{} -> {}", from, ShapeName(item->shape));
    return Status::Ok();
  }

  void PlanBlocks(DType dtype, ConvertItem* item) {
    if (!CanBeGrouped(item->source.role, item->cols)) {
      item->action = Action::kFloats;
      item->what = fmt::format("{} -> F32", DTypeName(dtype));
      return;
    }
    const std::optional<GroupShape> exact = ExactTilesOfBlocks(dtype);
    item->action = exact ? Action::kTiles : Action::kRound;
    item->shape = exact.value_or(RoundedShape(dtype));
    item->what = fmt::format("{} -> {}", DTypeName(dtype), ShapeName(item->shape));
  }

  void AddSpecs(ConvertItem* item) {
    item->spec_idx = static_cast<int>(plan_.specs.size());
    const FoundWeight& source = item->source;
    switch (item->action) {
      case Action::kTiles:
      case Action::kRound:
        plan_.specs.push_back(
            {item->name, DType::kU8, {NumTiles(item->rows), TileBytes(item->shape, item->cols)}});
        return;
      case Action::kFloats:
        plan_.specs.push_back({item->name, DType::kF32, {item->rows, item->cols}});
        return;
      case Action::kCopy:
        break;
    }
    const bool is_fp8 = source.scales != nullptr;
    plan_.specs.push_back(
        {item->name, is_fp8 ? DType::kF8E4M3 : source.tensor->dtype, source.tensor->shape});
    if (!is_fp8) return;
    item->scales_spec_idx = static_cast<int>(plan_.specs.size());
    plan_.specs.push_back({ScaleName(item->name), source.scales->dtype, source.scales->shape});
  }

  const Checkpoint& checkpoint_;
  bool may_requantize_;
  WeightUnpacker* unpacker_;
  std::set<const TensorInfo*> used_;
  int num_inexact_ = 0;
  ConvertItem first_inexact_;
  ConvertPlan plan_;
};

}  // namespace

Result<ConvertPlan> PlanConversion(const Checkpoint& checkpoint, const ModelConfig& config,
                                   bool may_requantize, WeightUnpacker* unpacker) {
  ASSIGN_OR_RETURN(const FoundWeights found, FindWeights(checkpoint, config));
  ConvertPlanner planner(checkpoint, may_requantize, unpacker);
  for (const FoundWeight& weight : found.weights) RETURN_IF_ERROR(planner.Add(weight));
  return planner.Take();
}

}  // namespace hadal
