#include "convert/feedback_rounder.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/types.h"
#include "convert/float_weight.h"
#include "tensor/group_tiles.h"
#include "tensor/scalar.h"

namespace hadal {
namespace {

constexpr int kLargestGroup = 128;

}  // namespace

// The state of the rows that are being rounded.
struct FeedbackRounder::Work {
  GroupShape shape;
  int num_rows = 0, cols = 0, num_groups = 0;
  const float* values = nullptr;   // [num_rows, cols]
  std::vector<int8_t> codes;       // [num_rows, cols]
  std::vector<GroupScale> scales;  // [num_rows, num_groups]
  std::vector<float> errors;       // [num_rows, cols]: rounded minus value; 0 where not yet rounded
  std::vector<float> feedback;     // [num_rows, group columns], then [num_rows, cols]: errors * H

  size_t At(int row, int col) const {
    return static_cast<size_t>(row) * static_cast<size_t>(cols) + static_cast<size_t>(col);
  }
  GroupScale* Scale(int row, int group) {
    return &scales[static_cast<size_t>(row) * static_cast<size_t>(num_groups) +
                   static_cast<size_t>(group)];
  }
};

FeedbackRounder::FeedbackRounder(const InputMoments& moments, const FeedbackOptions& options,
                                 Backend* backend, ThreadPool* pool)
    : cols_(moments.cols()), options_(options), backend_(backend), pool_(pool) {
  const ConstFloatMatrix matrix = moments.matrix();
  const auto size = static_cast<size_t>(cols_);
  damped_.assign(matrix.data, matrix.data + size * size);
  double trace = 0.0;
  for (size_t j = 0; j < size; ++j) trace += damped_[j * size + j];
  // Inputs that were never seen: every error counts the same.
  const double mean = trace > 0.0 ? trace / static_cast<double>(cols_) : 1.0;
  const auto extra = static_cast<float>(mean * (trace > 0.0 ? options.damping : 1.0));
  for (size_t j = 0; j < size; ++j) damped_[j * size + j] += extra;
  factor_ = FactorUdu(damped_, cols_, extra * 0.5f, backend);
}

// feedback[row, j] = sum over columns k before the group of error_k U_kj, for the columns j of the
// group; then the columns in order, each with the feedback of those before it in the group.
void FeedbackRounder::RoundGroupOfRows(int group, Work* work) {
  const GroupSpan span = SpanOfGroup(work->shape, cols_, group);
  work->feedback.resize(static_cast<size_t>(work->num_rows) * static_cast<size_t>(span.size));
  if (span.begin > 0) {
    // Columns of U are rows of `columns`, cut to those that are rounded already.
    std::vector<float> before(static_cast<size_t>(span.size) * static_cast<size_t>(span.begin));
    for (int j = 0; j < span.size; ++j) {
      std::copy_n(factor_.columns.data() + int64_t{span.begin + j} * cols_, span.begin,
                  before.data() + int64_t{j} * span.begin);
    }
    backend_->MatMul({work->errors.data(), work->num_rows, span.begin, cols_},
                     FloatWeight(before.data(), span.size, span.begin),
                     {work->feedback.data(), work->num_rows, span.size, span.size});
  } else {
    std::ranges::fill(work->feedback, 0.0f);
  }
  const auto size = static_cast<size_t>(span.size);
  const std::span<const float> importance(factor_.diagonal.data() + span.begin, size);
  pool_->ParallelFor(work->num_rows, [&](int row, int) {
    std::array<float, kLargestGroup> target;
    const float* feedback = work->feedback.data() + int64_t{row} * span.size;
    const float* values = work->values + work->At(row, span.begin);
    float* errors = work->errors.data() + work->At(row, span.begin);
    int8_t* codes = work->codes.data() + work->At(row, span.begin);
    for (size_t j = 0; j < size; ++j) target[j] = values[j] - feedback[j];
    GroupScale* scale = work->Scale(row, group);
    *scale =
        ChooseScale(work->shape, std::span(target).first(size), importance, ScaleChoice::kSearch);
    const CodeGrid grid = GridOf(work->shape, *scale);
    for (size_t j = 0; j < size; ++j) {
      const float* column =
          factor_.columns.data() + int64_t{span.begin + static_cast<int>(j)} * cols_ + span.begin;
      float residual = target[j];
      for (size_t k = 0; k < j; ++k) residual -= errors[k] * column[k];
      RoundToCodes(work->shape, *scale, {&residual, 1}, {&codes[j], 1});
      errors[j] = static_cast<float>(codes[j] - grid.offset) * grid.step - values[j];
    }
  });
}

// One code after another: the step of column j that lowers the cost most is -(e H)_j / H_jj,
// rounded to the grid.
void FeedbackRounder::SweepCodes(Work* work) {
  work->feedback.resize(work->errors.size());
  backend_->MatMul({work->errors.data(), work->num_rows, cols_, cols_},
                   FloatWeight(damped_.data(), cols_, cols_),
                   {work->feedback.data(), work->num_rows, cols_, cols_});
  pool_->ParallelFor(work->num_rows, [&](int row, int) {
    float* errors = work->errors.data() + work->At(row, 0);
    float* gradient = work->feedback.data() + work->At(row, 0);
    int8_t* codes = work->codes.data() + work->At(row, 0);
    for (int group = 0; group < work->num_groups; ++group) {
      const CodeGrid grid = GridOf(work->shape, *work->Scale(row, group));
      if (grid.step == 0.0f) continue;
      const GroupSpan span = SpanOfGroup(work->shape, cols_, group);
      for (int j = span.begin; j < span.begin + span.size; ++j) {
        const float* moments = damped_.data() + int64_t{j} * cols_;
        const float wanted = -gradient[j] / moments[j] / grid.step;
        if (!(std::fabs(wanted) > 0.5f)) continue;
        const int old_code = codes[j];  // NOLINT(bugprone-signed-char-misuse): a code has a sign
        const int code = std::clamp(
            old_code + static_cast<int>(std::nearbyint(std::clamp(wanted, -300.0f, 300.0f))),
            grid.lowest, grid.highest);
        if (code == old_code) continue;
        codes[j] = static_cast<int8_t>(code);
        const float change = static_cast<float>(code - old_code) * grid.step;
        errors[j] += change;
        for (int i = 0; i < cols_; ++i) gradient[i] += change * moments[i];
      }
    }
  });
}

// One scale after another: codes c of a group want the step that lowers the cost most,
// step - (e H c) / (c H c).
void FeedbackRounder::SweepScales(Work* work) {
  work->feedback.resize(work->errors.size());
  backend_->MatMul({work->errors.data(), work->num_rows, cols_, cols_},
                   FloatWeight(damped_.data(), cols_, cols_),
                   {work->feedback.data(), work->num_rows, cols_, cols_});
  pool_->ParallelFor(work->num_rows, [&](int row, int) {
    float* errors = work->errors.data() + work->At(row, 0);
    float* gradient = work->feedback.data() + work->At(row, 0);
    const int8_t* codes = work->codes.data() + work->At(row, 0);
    std::array<float, kLargestGroup> numbers;
    for (int group = 0; group < work->num_groups; ++group) {
      GroupScale* scale = work->Scale(row, group);
      const CodeGrid grid = GridOf(work->shape, *scale);
      const GroupSpan span = SpanOfGroup(work->shape, cols_, group);
      double slope = 0.0, curvature = 0.0;
      for (int j = 0; j < span.size; ++j) {
        numbers[static_cast<size_t>(j)] = static_cast<float>(codes[span.begin + j] - grid.offset);
      }
      for (int j = 0; j < span.size; ++j) {
        const float number = numbers[static_cast<size_t>(j)];
        slope += double{gradient[span.begin + j]} * number;
        const float* moments = damped_.data() + int64_t{span.begin + j} * cols_ + span.begin;
        float sum = 0.0f;
        for (int k = 0; k < span.size; ++k) sum += moments[k] * numbers[static_cast<size_t>(k)];
        curvature += double{number} * sum;
      }
      if (!(curvature > 0.0)) continue;
      const uint16_t bits = FloatToFp16(static_cast<float>(grid.step - slope / curvature));
      const float step = Fp16ToFloat(bits);
      if (!std::isfinite(step) || step == grid.step) continue;
      const double change = double{step} - grid.step;
      if (change * (2.0 * slope + change * curvature) >= 0.0) continue;  // the rounded one is worse
      scale->scale_bits = bits;
      for (int j = 0; j < span.size; ++j) {
        const float moved = static_cast<float>(change) * numbers[static_cast<size_t>(j)];
        if (moved == 0.0f) continue;
        errors[span.begin + j] += moved;
        const float* moments = damped_.data() + int64_t{span.begin + j} * cols_;
        for (int i = 0; i < cols_; ++i) gradient[i] += moved * moments[i];
      }
    }
  });
}

double FeedbackRounder::Cost(const Work& work) const {
  std::vector<float> product(work.errors.size());
  backend_->MatMul({work.errors.data(), work.num_rows, cols_, cols_},
                   FloatWeight(damped_.data(), cols_, cols_),
                   {product.data(), work.num_rows, cols_, cols_});
  double cost = 0.0;
  for (size_t i = 0; i < product.size(); ++i) cost += double{product[i]} * work.errors[i];
  return cost;
}

double FeedbackRounder::Round(const GroupShape& shape, int first_row, int num_rows,
                              const float* values, std::span<std::byte> tiles) {
  Work work;
  work.shape = shape;
  work.num_rows = num_rows;
  work.cols = cols_;
  work.num_groups = NumGroups(shape, cols_);
  work.values = values;
  const size_t count = static_cast<size_t>(num_rows) * static_cast<size_t>(cols_);
  work.codes.resize(count);
  work.errors.resize(count);
  work.scales.resize(static_cast<size_t>(num_rows) * static_cast<size_t>(work.num_groups));
  for (int group = 0; group < work.num_groups; ++group) RoundGroupOfRows(group, &work);
  for (int sweep = 0; sweep < options_.num_sweeps; ++sweep) {
    SweepScales(&work);
    SweepCodes(&work);
  }
  for (int row = 0; row < num_rows; ++row) {
    for (int group = 0; group < work.num_groups; ++group) {
      const GroupSpan span = SpanOfGroup(shape, cols_, group);
      const GroupScale& scale = *work.Scale(row, group);
      StoreGroup(shape, cols_, first_row + row, group,
                 {{work.codes.data() + work.At(row, span.begin), static_cast<size_t>(span.size)},
                  scale.scale_bits,
                  scale.zero_point},
                 tiles);
    }
  }
  return Cost(work);
}

}  // namespace hadal
