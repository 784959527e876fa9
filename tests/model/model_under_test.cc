#include "tests/model/model_under_test.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <gtest/gtest.h>

#include "base/random.h"
#include "kernels/dispatch.h"
#include "tests/support/golden_model.h"

namespace hadal {
namespace {

constexpr double kClearChoice = 3e-5;
constexpr double kBound = 1e-4;

const char* FormName(AttentionForm form) {
  if (form == AttentionForm::kAuto) return "auto";
  return form == AttentionForm::kAbsorbed ? "absorbed" : "expanded";
}

// The worst row of a kind: difference as a share of the largest |expected|. Infinite where rows are
// missing, too many or not finite.
double WorstDifference(const Logits& found, const NaiveMatrix& expected) {
  if (found.num_rows != expected.rows) return INFINITY;
  if (found.num_rows > 0 && found.vocab_size != expected.cols) return INFINITY;
  double worst = 0;
  for (int r = 0; r < expected.rows; ++r) {
    double largest = 0, difference = 0;
    for (int j = 0; j < expected.cols; ++j) {
      const double got = found.row(r)[j], want = expected.row(r)[j];
      if (!std::isfinite(got)) return INFINITY;
      largest = std::max(largest, std::abs(want));
      difference = std::max(difference, std::abs(got - want));
    }
    worst = std::max(worst, difference / largest);
  }
  return worst;
}

}  // namespace

ModelUnderTest::ModelUnderTest(const Json& config, const RandomModelOptions& options)
    : path_(dir_.path()) {
  const Status written = WriteRandomModel(config, options, path_);
  EXPECT_TRUE(written.ok()) << written.message();
  if (written.ok()) Load();
}

ModelUnderTest::ModelUnderTest(std::string path) : path_(std::move(path)) { Load(); }

void ModelUnderTest::Load() {
  const auto checkpoint = Checkpoint::Open(path_);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  Result<NaiveModel> naive = NaiveModel::Load(**checkpoint);
  ASSERT_TRUE(naive.ok()) << naive.status().message();
  naive_ = std::make_unique<NaiveModel>(std::move(naive).value());
}

ClearSequence ModelUnderTest::DrawSequence(int length, uint64_t seed) const {
  ClearSequence sequence;
  for (int passed_over = 0; passed_over < 50; ++passed_over) {
    std::vector<int> tokens;
    for (int i = 0; i < length; ++i) {
      const double unit = RandomUnit(seed, static_cast<uint64_t>(i), passed_over);
      tokens.push_back(static_cast<int>(unit * naive_->config().vocab_size));
    }
    sequence.expected = naive_->Run(tokens);
    if (sequence.expected.clearest_choice_at_least < kClearChoice) continue;
    if (passed_over > 0) testing::Test::RecordProperty("near_ties_passed_over", passed_over);
    for (const int token : tokens) sequence.tokens.push_back({token});
    return sequence;
  }
  ADD_FAILURE() << "no sequence of " << length << " tokens without a near tie";
  return sequence;
}

ClearSequence ModelUnderTest::MakeSequence(std::vector<int> tokens) const {
  ClearSequence sequence;
  sequence.expected = naive_->Run(tokens);
  EXPECT_GE(sequence.expected.clearest_choice_at_least, kClearChoice);
  for (const int token : tokens) sequence.tokens.push_back({token});
  return sequence;
}

std::vector<Way> AllWays(const std::vector<int>& chunks) {
  std::vector<Way> ways;
  for (const KernelTable* table : UsableKernels()) {
    const bool is_slow = table->name == std::string("reference");
    for (const AttentionForm form :
         {AttentionForm::kAuto, AttentionForm::kAbsorbed, AttentionForm::kExpanded}) {
      for (const int chunk : chunks) {
        if (is_slow && chunk != chunks[chunks.size() / 2]) continue;
        ways.push_back({table->name, form, chunk});
      }
    }
  }
  return ways;
}

RunnerOptions OptionsOf(const ModelUnderTest& model, const Way& way) {
  RunnerOptions options;
  options.model_path = model.path();
  options.num_threads = 2;
  options.kernels = way.kernels;
  options.attention_form = way.form;
  options.max_step_tokens = way.chunk;
  return options;
}

void ExpectAgreement(const ModelUnderTest& model, const ClearSequence& sequence,
                     const std::vector<Way>& ways) {
  ASSERT_FALSE(sequence.tokens.empty());
  for (const Way& way : ways) {
    const AllLogits found = ComputeLogits(OptionsOf(model, way), sequence.tokens);
    const auto what = [&] {
      return testing::Message() << way.kernels << ", " << FormName(way.form) << ", chunks of "
                                << way.chunk << ", " << sequence.tokens.size() << " tokens";
    };
    EXPECT_LE(WorstDifference(found.main, sequence.expected.logits), kBound) << what();
    EXPECT_LE(WorstDifference(found.mtp, sequence.expected.mtp_logits), kBound)
        << "MTP, " << what();
    if (testing::Test::HasFailure()) return;  // the first way that fails says enough
  }
}

}  // namespace hadal
