#include "convert/recipe.h"

#include <optional>

#include <fmt/format.h>

#include "base/json.h"
#include "base/quote.h"
#include "model/weight_formats.h"

namespace hadal {
namespace {

constexpr size_t kMaxRules = 10'000;

Status CheckKeys(const Json& object, const std::vector<std::string_view>& known,
                 const std::string& what) {
  if (!object.is_object()) {
    return Status::Corrupt(
        fmt::format("{}: expected a JSON object, found {}", what, object.type_name()));
  }
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    return Status::Corrupt(fmt::format("{}: {}: expected one of {}, found an unknown key", what,
                                       Quoted(key), fmt::join(known, ", ")));
  }
  return Status::Ok();
}

// The group keys of a recipe or a rule; `format` is read already.
Result<GroupShape> ReadGroups(const Json& object, const GroupShape& absent, QuantFormat format,
                              const std::string& what) {
  GroupShape shape = {format, absent.group_size, absent.has_zero_points};
  ASSIGN_OR_RETURN(const int64_t group_size,
                   ReadIntOr(object, "group_size", 1, 1 << 20, absent.group_size, what));
  if (group_size != 32 && group_size != 64 && group_size != 128) {
    return Status::Corrupt(
        fmt::format("{}: group_size: expected 32, 64 or 128, found {}", what, group_size));
  }
  shape.group_size = static_cast<int>(group_size);
  const bool is_int4 = format == QuantFormat::kInt4Group;
  ASSIGN_OR_RETURN(shape.has_zero_points,
                   ReadBoolOr(object, "zero_points", is_int4 && absent.has_zero_points, what));
  if (shape.has_zero_points && !is_int4) {
    return Status::Corrupt(
        fmt::format("{}: zero_points: expected false, since int8 is symmetric, found true", what));
  }
  return shape;
}

Result<WeightTarget> ReadTarget(const Json& object, const GroupShape& absent,
                                const std::string& what) {
  ASSIGN_OR_RETURN(const std::string format, ReadString(object, "format", what));
  WeightTarget target;
  if (format == "keep") return target;
  if (format == "fp8") {
    target.kind = WeightTarget::Kind::kFp8;
    return target;
  }
  if (format != "int4" && format != "int8") {
    return Status::Corrupt(fmt::format("{}: format: expected int4, int8, fp8 or keep, found {}",
                                       what, Quoted(format)));
  }
  target.kind = WeightTarget::Kind::kGrouped;
  ASSIGN_OR_RETURN(
      target.shape,
      ReadGroups(object, absent,
                 format == "int4" ? QuantFormat::kInt4Group : QuantFormat::kInt8Group, what));
  return target;
}

Json GroupsToJson(const GroupShape& shape) {
  return {{"format", shape.format == QuantFormat::kInt4Group ? "int4" : "int8"},
          {"group_size", shape.group_size},
          {"zero_points", shape.has_zero_points}};
}

}  // namespace

bool MatchesPattern(std::string_view pattern, std::string_view name) {
  // Greedy with one place to come back to: the last star, and what it has swallowed.
  size_t p = 0, n = 0;
  std::optional<size_t> star;
  size_t after_star = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star) {
      p = *star + 1;
      n = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Result<Recipe> Recipe::Parse(std::string_view text, const GroupShape& defaults,
                             const std::string& what) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(text, what));
  RETURN_IF_ERROR(CheckKeys(json, {"format", "group_size", "zero_points", "rules"}, what));
  ASSIGN_OR_RETURN(
      const std::string format,
      ReadStringOr(json, "format", defaults.format == QuantFormat::kInt4Group ? "int4" : "int8",
                   what));
  if (format != "int4" && format != "int8") {
    return Status::Corrupt(
        fmt::format("{}: format: expected int4 or int8, found {}", what, Quoted(format)));
  }
  ASSIGN_OR_RETURN(
      const GroupShape shape,
      ReadGroups(json, defaults,
                 format == "int4" ? QuantFormat::kInt4Group : QuantFormat::kInt8Group, what));
  Recipe recipe(shape);
  if (!HasValue(json, "rules")) return recipe;
  const Json& rules = json["rules"];
  if (!rules.is_array() || rules.size() > kMaxRules) {
    return Status::Corrupt(fmt::format("{}: rules: expected a list of at most {} rules, found {}",
                                       what, kMaxRules,
                                       rules.is_array() ? "more" : rules.type_name()));
  }
  for (size_t i = 0; i < rules.size(); ++i) {
    const std::string where = fmt::format("{}: rules[{}]", what, i);
    RETURN_IF_ERROR(CheckKeys(rules[i], {"match", "format", "group_size", "zero_points"}, where));
    Rule rule;
    ASSIGN_OR_RETURN(rule.pattern, ReadString(rules[i], "match", where));
    ASSIGN_OR_RETURN(rule.target, ReadTarget(rules[i], shape, where));
    recipe.rules_.push_back(std::move(rule));
  }
  return recipe;
}

WeightTarget Recipe::TargetOf(const ExpectedWeight& weight) const {
  using Kind = WeightTarget::Kind;
  if (weight.shape.size() != 2) return {};
  const bool can_be_grouped = CanBeGrouped(weight.role, weight.shape[1]);
  for (const Rule& rule : rules_) {
    if (!MatchesPattern(rule.pattern, weight.name)) continue;
    if (rule.target.kind == Kind::kGrouped && !can_be_grouped) return {};
    return rule.target;
  }
  if (weight.role == WeightRole::kKvB && shape_.format == QuantFormat::kInt4Group) {
    return {Kind::kFp8, {}};
  }
  const std::optional<GroupShape> shape = DefaultFormat(weight.role, weight.shape[1], shape_);
  if (!shape) return {};
  return {Kind::kGrouped, *shape};
}

Json Recipe::ToJson() const {
  Json json = GroupsToJson(shape_);
  json["rules"] = Json::array();
  for (const Rule& rule : rules_) {
    Json entry = {{"match", rule.pattern}};
    switch (rule.target.kind) {
      case WeightTarget::Kind::kAsIs:
        entry["format"] = "keep";
        break;
      case WeightTarget::Kind::kFp8:
        entry["format"] = "fp8";
        break;
      case WeightTarget::Kind::kGrouped:
        entry.update(GroupsToJson(rule.target.shape));
        break;
    }
    json["rules"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace hadal
