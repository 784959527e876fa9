// Every logit of the golden models, in every form, chunking, number of threads and kernel set.
// Bound: 1e-4 of the largest |expected logit| of the row, as the reference's authors state it for
// float32 activations.
#include <string>

#include <gtest/gtest.h>

#include "kernels/dispatch.h"
#include "tests/support/golden_model.h"

namespace hadal {
namespace {

constexpr double kBound = 1e-4;

class Golden : public testing::TestWithParam<std::string> {
 protected:
  RunnerOptions Options() const {
    RunnerOptions options;
    options.model_path = GoldenModelPath(GetParam());
    options.num_threads = 2;
    return options;
  }
};

void ExpectGolden(const RunnerOptions& options, const GoldenSequence& sequence,
                  const std::string& what) {
  const AllLogits found = ComputeLogits(options, sequence.tokens);
  EXPECT_LE(WorstRow(found.main, sequence.logits, sequence.row_step), kBound)
      << what << " " << sequence.name;
  EXPECT_LE(WorstRow(found.mtp, sequence.mtp_logits, sequence.row_step), kBound)
      << what << " MTP " << sequence.name;
}

// Small chunks of the long sequence unfold its latents again and again, and the reference kernels
// are slow: what they would show, the shorter sequences show as well.
bool IsWorthwhile(const KernelTable& kernels, const GoldenSequence& sequence, int chunk) {
  if (kernels.name == std::string("reference")) return chunk == 64 && sequence.tokens.size() < 100;
  return chunk >= 64 || sequence.tokens.size() < 100;
}

TEST_P(Golden, LogitsMatchInEveryFormChunkingAndKernelSet) {
  for (const GoldenSequence& sequence : ReadGoldenSequences(GetParam())) {
    for (const KernelTable* kernels : UsableKernels()) {
      for (const AttentionForm form :
           {AttentionForm::kAuto, AttentionForm::kAbsorbed, AttentionForm::kExpanded}) {
        for (const int chunk : {1, 7, 64, 512}) {
          if (!IsWorthwhile(*kernels, sequence, chunk)) continue;
          RunnerOptions options = Options();
          options.kernels = kernels->name;
          options.attention_form = form;
          options.max_step_tokens = chunk;
          ExpectGolden(options, sequence,
                       std::string(kernels->name) + " form " +
                           std::to_string(static_cast<int>(form)) + " chunk " +
                           std::to_string(chunk));
        }
      }
    }
  }
}

// Whatever shares the work, in whatever pieces: the same bits.
TEST_P(Golden, BitsDoNotDependOnThreadsOrChunks) {
  for (const GoldenSequence& sequence : ReadGoldenSequences(GetParam())) {
    for (const AttentionForm form :
         {AttentionForm::kAuto, AttentionForm::kAbsorbed, AttentionForm::kExpanded}) {
      RunnerOptions options = Options();
      options.attention_form = form;
      options.num_threads = 1;
      const AllLogits whole = ComputeLogits(options, sequence.tokens);
      ASSERT_EQ(whole.main.num_rows, static_cast<int>(sequence.tokens.size()));
      for (const auto& [threads, chunk] :
           {std::pair(2, 1), std::pair(4, 7), std::pair(2, 64), std::pair(4, 512)}) {
        if (chunk == 1 && sequence.tokens.size() > 100)
          continue;  // slow, and the shorter ones show it
        options.num_threads = threads;
        options.max_step_tokens = chunk;
        const AllLogits other = ComputeLogits(options, sequence.tokens);
        EXPECT_TRUE(whole.main.values == other.main.values)
            << sequence.name << " threads " << threads << " chunk " << chunk;
        EXPECT_TRUE(whole.mtp.values == other.mtp.values)
            << "MTP " << sequence.name << " threads " << threads << " chunk " << chunk;
      }
    }
  }
}

std::string NameOf(const testing::TestParamInfo<std::string>& param) {
  std::string name = param.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, Golden, testing::ValuesIn(GoldenModelNames()), NameOf);
INSTANTIATE_TEST_SUITE_P(Exports, Golden, testing::ValuesIn(GoldenExportNames()), NameOf);

}  // namespace
}  // namespace hadal
