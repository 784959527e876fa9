// What each weight of a quantised checkpoint is stored as.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/status.h"
#include "model/weight_names.h"
#include "tensor/block_layout.h"

namespace hadal {

struct WeightTarget {
  enum class Kind { kAsIs, kFp8, kGrouped };
  Kind kind = Kind::kAsIs;
  GroupShape shape;  // of kGrouped

  friend bool operator==(const WeightTarget&, const WeightTarget&) = default;
};

// Rules over tensor names; the first that matches decides, and without one the default of
// weight_formats.h. kv_b, which cannot be grouped, is FP8 then when the others have four bits.
class Recipe {
 public:
  Recipe() = default;
  explicit Recipe(const GroupShape& shape) : shape_(shape) {}

  // {"format": "int4"|"int8", "group_size": 32|64|128, "zero_points": bool, "rules": [{"match":
  // pattern, "format": "int4"|"int8"|"fp8"|"keep", "group_size"?, "zero_points"?}, ...]}; what is
  // absent is taken from `defaults`, and in a rule from the recipe. In a pattern `*` stands for any
  // characters. `what` names the file in errors. kCorrupt: an unknown key or value.
  static Result<Recipe> Parse(std::string_view text, const GroupShape& defaults,
                              const std::string& what);

  // Weights that cannot be grouped (CanBeGrouped) stay as they are whatever a rule says of groups;
  // FP8 is for matrices.
  WeightTarget TargetOf(const ExpectedWeight& weight) const;

  const GroupShape& shape() const { return shape_; }
  Json ToJson() const;

 private:
  struct Rule {
    std::string pattern;
    WeightTarget target;
  };
  GroupShape shape_;
  std::vector<Rule> rules_;
};

// Whether `pattern`, in which `*` stands for any characters, is the whole of `name`.
bool MatchesPattern(std::string_view pattern, std::string_view name);

}  // namespace hadal
