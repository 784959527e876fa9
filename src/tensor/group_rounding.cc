#include "tensor/group_rounding.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "tensor/group_tiles.h"
#include "tensor/scalar.h"

namespace hadal {
namespace {

constexpr int kLargestGroup = 128;
using GroupFloats = std::array<float, kLargestGroup>;

// The group as the loops below want it: finite, with its importance.
struct Group {
  GroupFloats values, importance;
  int size = 0;
  float lowest = 0.0f, highest = 0.0f;  // zero included
};

Group Prepare(std::span<const float> values, std::span<const float> importance) {
  HADAL_CHECK(values.size() <= kLargestGroup);
  Group group;
  group.size = static_cast<int>(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    group.values[i] = std::isfinite(values[i]) ? values[i] : 0.0f;
    group.importance[i] = importance.empty() ? 1.0f : importance[i];
    group.lowest = std::min(group.lowest, group.values[i]);
    group.highest = std::max(group.highest, group.values[i]);
  }
  return group;
}

// Rounds to a whole number, ties to even, for magnitudes below 2^22: adding 1.5 * 2^23 leaves no
// bits behind the point. Unlike nearbyint it works on several numbers at once.
float RoundToWhole(float value) {
  constexpr float kMagic = 12582912.0f;
  return (value + kMagic) - kMagic;
}

// What a scale costs, and the scale that fits its own codes best.
struct Trial {
  double error = 0.0;
  double better_step = 0.0;
};

Trial Try(const Group& group, const CodeGrid& grid) {
  const float inverse = grid.step == 0.0f ? 0.0f : 1.0f / grid.step;
  const auto low = static_cast<float>(grid.lowest - grid.offset);
  const auto high = static_cast<float>(grid.highest - grid.offset);
  // Four chains, so that four numbers are worked on at once.
  std::array<float, 4> error = {}, code_value = {}, code_code = {};
  for (int i = 0; i < group.size; i += 4) {
    for (int lane = 0; lane < 4; ++lane) {
      const auto at = static_cast<size_t>(i + lane);
      const auto l = static_cast<size_t>(lane);
      const float value = group.values[at];
      const float code = std::min(std::max(RoundToWhole(value * inverse), low), high);
      const float difference = value - code * grid.step;
      const float weighted = group.importance[at] * code;
      error[l] += group.importance[at] * difference * difference;
      code_value[l] += weighted * value;
      code_code[l] += weighted * code;
    }
  }
  const double squares = double{code_code[0]} + code_code[1] + code_code[2] + code_code[3];
  Trial trial;
  trial.error = double{error[0]} + error[1] + error[2] + error[3];
  trial.better_step =
      squares > 0.0
          ? (double{code_value[0]} + code_value[1] + code_value[2] + code_value[3]) / squares
          : 0.0;
  return trial;
}

class Search {
 public:
  Search(const GroupShape& shape, const Group& group) : shape_(shape), group_(group) {}

  // Considers a step (rounded to binary16) with a zero point, and the step that fits its codes
  // best.
  void Consider(double step, int zero_point) {
    const Trial trial = ConsiderOne(step, zero_point);
    if (trial.better_step != 0.0) ConsiderOne(trial.better_step, zero_point);
  }
  const GroupScale& best() const { return best_; }

 private:
  Trial ConsiderOne(double step, int zero_point) {
    const uint16_t bits = FloatToFp16(static_cast<float>(step));
    if ((bits & 0x7C00) == 0x7C00) return {};  // infinite
    const GroupScale scale = {bits, zero_point};
    const Trial trial = Try(group_, GridOf(shape_, scale));
    if (!has_best_ || trial.error < error_) {
      best_ = scale;
      error_ = trial.error;
      has_best_ = true;
    }
    return trial;
  }

  const GroupShape& shape_;
  const Group& group_;
  GroupScale best_;
  double error_ = 0.0;
  bool has_best_ = false;
};

// Steps around those that just cover the range, on the side of smaller ones: large values are rare.
void SearchSymmetric(const GroupShape& shape, const Group& group, ScaleChoice choice,
                     Search* search) {
  const bool is_int4 = shape.format == QuantFormat::kInt4Group;
  const double largest = std::max(-group.lowest, group.highest);
  const double levels = is_int4 ? 8 : 127;
  // Of kInt4Group code -8 has no counterpart: the sign of the step puts it to the larger side.
  const double sign = is_int4 && group.highest > -group.lowest ? -1.0 : 1.0;
  const int count = choice == ScaleChoice::kQuick ? 5 : is_int4 ? 18 : 6;
  const double shortest = is_int4 ? 0.65 : 0.92;
  for (int i = 0; i < count; ++i) {
    const double share = 1.08 - (1.08 - shortest) * i / (count - 1);
    search->Consider(sign * share * largest / levels, 8);
    if (is_int4 && choice == ScaleChoice::kSearch) {
      search->Consider(-sign * share * largest / (levels - 1), 8);
    }
  }
}

// Ranges that are cut at either end.
void SearchAsymmetric(const Group& group, ScaleChoice choice, Search* search) {
  const int count = choice == ScaleChoice::kQuick ? 2 : 7;
  for (int low_cut = 0; low_cut < count; ++low_cut) {
    for (int high_cut = 0; high_cut < count; ++high_cut) {
      const double low = group.lowest * (1.04 - 0.07 * low_cut);
      const double high = group.highest * (1.04 - 0.07 * high_cut);
      const double step = (high - low) / 15.0;
      if (step <= 0.0) continue;
      const int zero_point = std::clamp(static_cast<int>(std::nearbyint(-low / step)), 0, 15);
      search->Consider(step, zero_point);
    }
  }
}

GroupScale CoverRange(const GroupShape& shape, const Group& group) {
  if (shape.has_zero_points) {
    const double step = (double{group.highest} - group.lowest) / 15.0;
    if (step <= 0.0) return {};
    return {FloatToFp16(static_cast<float>(step)),
            std::clamp(static_cast<int>(std::nearbyint(-group.lowest / step)), 0, 15)};
  }
  const double levels = shape.format == QuantFormat::kInt4Group ? 7.0 : 127.0;
  const float largest = std::max(-group.lowest, group.highest);
  return {FloatToFp16(static_cast<float>(largest / levels)), 8};
}

}  // namespace

CodeGrid GridOf(const GroupShape& shape, const GroupScale& scale) {
  const float step = Fp16ToFloat(scale.scale_bits);
  if (shape.format == QuantFormat::kInt8Group) return {step, 0, -127, 127};
  return {step, shape.has_zero_points ? scale.zero_point : 8, 0, 15};
}

GroupScale ChooseScale(const GroupShape& shape, std::span<const float> values,
                       std::span<const float> importance, ScaleChoice choice) {
  const Group group = Prepare(values, importance);
  const GroupScale covering = CoverRange(shape, group);
  if (choice == ScaleChoice::kRange || group.lowest == group.highest) return covering;
  Search search(shape, group);
  search.Consider(Fp16ToFloat(covering.scale_bits), covering.zero_point);
  if (shape.has_zero_points) {
    SearchAsymmetric(group, choice, &search);
  } else {
    SearchSymmetric(shape, group, choice, &search);
  }
  return search.best();
}

void RoundToCodes(const GroupShape& shape, const GroupScale& scale, std::span<const float> values,
                  std::span<int8_t> codes) {
  const CodeGrid grid = GridOf(shape, scale);
  const float inverse = grid.step == 0.0f ? 0.0f : 1.0f / grid.step;
  for (size_t i = 0; i < values.size(); ++i) {
    // Bounded first: infinity and NaN must not reach the conversion.
    const float place = std::isfinite(values[i]) ? values[i] * inverse : 0.0f;
    const float bounded = std::clamp(place, -256.0f, 256.0f);
    const int code = static_cast<int>(RoundToWhole(bounded)) + grid.offset;
    codes[i] = static_cast<int8_t>(std::clamp(code, grid.lowest, grid.highest));
  }
}

void RoundRows(const GroupShape& shape, int cols, int first_row, int num_rows, const float* values,
               ScaleChoice choice, std::span<std::byte> tiles) {
  std::array<int8_t, kLargestGroup> codes;
  for (int row = 0; row < num_rows; ++row) {
    for (int group = 0; group < NumGroups(shape, cols); ++group) {
      const GroupSpan span = SpanOfGroup(shape, cols, group);
      const auto size = static_cast<size_t>(span.size);
      const std::span<const float> group_values(values + int64_t{row} * cols + span.begin, size);
      const GroupScale scale = ChooseScale(shape, group_values, {}, choice);
      RoundToCodes(shape, scale, group_values, std::span(codes).first(size));
      StoreGroup(shape, cols, first_row + row, group,
                 {std::span<const int8_t>(codes).first(size), scale.scale_bits, scale.zero_point},
                 tiles);
    }
  }
}

}  // namespace hadal
