#include "convert/quantize_plan.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "model/weight_lookup.h"
#include "tensor/group_tiles.h"

namespace hadal {
namespace {

class QuantizePlanner {
 public:
  QuantizePlanner(const Checkpoint& checkpoint, const Recipe& recipe, const FoundWeights& found)
      : checkpoint_(checkpoint), recipe_(recipe) {
    for (const FoundWeight& weight : found.weights) by_name_[weight.name] = &weight;
  }

  void Add(const ExpectedWeight& weight) {
    const auto entry = by_name_.find(weight.name);
    if (entry == by_name_.end()) return;  // MTP's copies may be absent
    const FoundWeight& found = *entry->second;
    if (weight.has_fallback && IsCopy(weight.role, *found.tensor)) return;
    QuantizeItem item;
    item.role = weight.role;
    item.part = weight.part;
    item.layer_idx = weight.layer_idx;
    item.expert_idx = weight.expert_idx;
    item.name = weight.name;
    item.rows = static_cast<int>(weight.shape[0]);
    item.cols = weight.shape.size() == 2 ? static_cast<int>(weight.shape[1]) : 0;
    item.source = found.tensor;
    item.source_scales = found.scales;
    item.target = recipe_.TargetOf(weight);
    AddSpecs(weight, &item);
    num_used_ += item.source_scales != nullptr ? 2 : 1;
    plan_.items.push_back(std::move(item));
  }

  QuantizePlan Take() {
    plan_.num_left_out = static_cast<int>(checkpoint_.tensors().size()) - num_used_;
    return std::move(plan_);
  }

 private:
  bool IsCopy(WeightRole role, const TensorInfo& tensor) const {
    const char* name =
        role == WeightRole::kMtpHead ? "lm_head.weight" : "model.embed_tokens.weight";
    const TensorInfo* main = checkpoint_.Find(name);
    return main != nullptr && main->dtype == tensor.dtype && main->shape == tensor.shape &&
           std::ranges::equal(main->bytes, tensor.bytes);
  }

  void AddSpecs(const ExpectedWeight& weight, QuantizeItem* item) {
    using Kind = WeightTarget::Kind;
    // FP8 stays what it is.
    if (item->target.kind == Kind::kFp8 && item->source_scales != nullptr) item->target = {};
    item->spec_idx = static_cast<int>(plan_.specs.size());
    switch (item->target.kind) {
      case Kind::kGrouped:
        plan_.specs.push_back({weight.name,
                               DType::kU8,
                               {NumTiles(item->rows), TileBytes(item->target.shape, item->cols)}});
        return;
      case Kind::kFp8:
        plan_.specs.push_back({weight.name, DType::kF8E4M3, weight.shape});
        break;
      case Kind::kAsIs:
        // U8 codes of FP8 say what they are, since U8 means tiles in the result.
        plan_.specs.push_back(
            {weight.name, item->source_scales != nullptr ? DType::kF8E4M3 : item->source->dtype,
             weight.shape});
        if (item->source_scales == nullptr) return;
        break;
    }
    item->scales_spec_idx = static_cast<int>(plan_.specs.size());
    plan_.specs.push_back(
        {ScaleName(weight.name),
         item->target.kind == Kind::kFp8 ? DType::kF32 : item->source_scales->dtype,
         ScaleShape(weight.shape)});
  }

  const Checkpoint& checkpoint_;
  const Recipe& recipe_;
  std::map<std::string_view, const FoundWeight*> by_name_;
  QuantizePlan plan_;
  int num_used_ = 0;
};

}  // namespace

int64_t QuantizePlan::num_elements() const {
  int64_t total = 0;
  for (const QuantizeItem& item : items) total += item.num_elements();
  return total;
}

double QuantizePlan::bits_per_weight() const {
  double bits = 0.0, elements = 0.0;
  for (const QuantizeItem& item : items) {
    if (item.cols == 0 || item.part == WeightPart::kEmbedding || item.part == WeightPart::kHead ||
        item.part == WeightPart::kRouter) {
      continue;
    }
    for (const int spec : {item.spec_idx, item.scales_spec_idx}) {
      if (spec < 0) continue;
      const Result<int64_t> bytes = SpecBytes(specs[static_cast<size_t>(spec)], "");
      HADAL_CHECK(bytes.ok());
      bits += 8.0 * static_cast<double>(*bytes);
    }
    elements += static_cast<double>(item.num_elements());
  }
  return elements > 0.0 ? bits / elements : 0.0;
}

Result<QuantizePlan> PlanQuantization(const Checkpoint& checkpoint, const ModelConfig& config,
                                      const Recipe& recipe) {
  ASSIGN_OR_RETURN(const FoundWeights found, FindWeights(checkpoint, config));
  QuantizePlanner planner(checkpoint, recipe, found);
  const auto add = [&planner](const ExpectedWeight& weight) { planner.Add(weight); };
  ForEachWeight(config, add);
  if (found.has_mtp) ForEachMtpWeight(config, add);
  return planner.Take();
}

}  // namespace hadal
