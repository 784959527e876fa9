#include "model/rope_config.h"

#include <optional>

#include <fmt/format.h>

#include "base/json.h"
#include "base/quote.h"

namespace hadal {
namespace {

constexpr double kDefaultTheta = 10000.0;  // of every release

// "type" and "rope_type" say the same; "default" when neither is there.
Result<std::string> ReadRopeType(const Json& rope, const std::string& what) {
  ASSIGN_OR_RETURN(const std::string old_word, ReadStringOr(rope, "type", "", what));
  ASSIGN_OR_RETURN(const std::string new_word, ReadStringOr(rope, "rope_type", "", what));
  if (!old_word.empty() && !new_word.empty() && old_word != new_word) {
    return Status::Corrupt(fmt::format("{}: rope_type: expected the same as type, {}, found {}",
                                       what, Quoted(old_word), Quoted(new_word)));
  }
  if (!new_word.empty()) return new_word;
  if (!old_word.empty()) return old_word;
  if (HasValue(rope, "factor")) {
    return Status::Corrupt(
        fmt::format("{}: rope_type: expected a value beside factor, found nothing", what));
  }
  return std::string("default");
}

// Options of newer writers that change the result and that no release uses.
Status CheckNoOtherOptions(const Json& rope, const std::string& what) {
  if (HasValue(rope, "attention_factor")) {
    return Status::Unsupported(fmt::format("{}: attention_factor: expected no value, found {}",
                                           what, Quoted(DumpJson(rope["attention_factor"]), 60)));
  }
  ASSIGN_OR_RETURN(const bool truncates, ReadBoolOr(rope, "truncate", true, what));
  if (truncates) return Status::Ok();
  return Status::Unsupported(fmt::format("{}: truncate: expected true, found false", what));
}

// Specification, 3.5 and 3.6. The frequencies apply at every length.
Result<RopeScaling> ReadYarn(const Json& rope, const std::string& what) {
  RETURN_IF_ERROR(CheckNoOtherOptions(rope, what));
  RopeScaling yarn;
  yarn.is_yarn = true;
  ASSIGN_OR_RETURN(yarn.factor, ReadNumber(rope, "factor", what));
  ASSIGN_OR_RETURN(const int64_t length,
                   ReadInt(rope, "original_max_position_embeddings", 1, INT32_MAX, what));
  yarn.original_max_position_embeddings = static_cast<int>(length);
  ASSIGN_OR_RETURN(yarn.beta_fast, ReadNumberOr(rope, "beta_fast", yarn.beta_fast, what));
  ASSIGN_OR_RETURN(yarn.beta_slow, ReadNumberOr(rope, "beta_slow", yarn.beta_slow, what));
  ASSIGN_OR_RETURN(yarn.mscale, ReadNumberOr(rope, "mscale", yarn.mscale, what));
  ASSIGN_OR_RETURN(yarn.mscale_all_dim,
                   ReadNumberOr(rope, "mscale_all_dim", yarn.mscale_all_dim, what));
  return yarn;
}

// What one of the two spellings says.
struct Spelling {
  RopeScaling scaling;
  std::optional<double> theta;
};

Result<Spelling> ReadSpelling(const Json& config, const char* key, const std::string& what) {
  const Json& rope = config[key];
  const std::string place = fmt::format("{}: {}", what, key);
  if (!rope.is_object()) {
    return Status::Corrupt(
        fmt::format("{}: expected an object or null, found {}", place, rope.type_name()));
  }
  Spelling spelling;
  if (HasValue(rope, "rope_theta")) {
    ASSIGN_OR_RETURN(spelling.theta, ReadNumber(rope, "rope_theta", place));
  }
  ASSIGN_OR_RETURN(const std::string type, ReadRopeType(rope, place));
  if (type == "default") return spelling;
  if (type != "yarn") {
    return Status::Unsupported(
        fmt::format("{}: rope_type: expected yarn or default, found {}", place, Quoted(type)));
  }
  ASSIGN_OR_RETURN(spelling.scaling, ReadYarn(rope, place));
  return spelling;
}

}  // namespace

Result<RopeConfig> ReadRopeConfig(const Json& config, const std::string& what) {
  RopeConfig rope;
  std::optional<double> theta;
  bool is_known = false;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!HasValue(config, key)) continue;
    ASSIGN_OR_RETURN(const Spelling spelling, ReadSpelling(config, key, what));
    if (is_known && spelling.scaling != rope.scaling) {
      return Status::Corrupt(fmt::format(
          "{}: rope_parameters: expected the same as rope_scaling, found other values", what));
    }
    is_known = true;
    rope.scaling = spelling.scaling;
    if (spelling.theta) theta = spelling.theta;
  }
  ASSIGN_OR_RETURN(rope.theta,
                   ReadNumberOr(config, "rope_theta", theta.value_or(kDefaultTheta), what));
  if (theta && *theta != rope.theta) {
    return Status::Corrupt(fmt::format(
        "{}: rope_theta: expected {} as in rope_parameters, found {}", what, *theta, rope.theta));
  }
  return rope;
}

}  // namespace hadal
