// Every clear greedy continuation of the golden models, through the engine.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/golden_model.h"
#include "tests/system/open_engine.h"

namespace hadal {
namespace {

// Returns how many continuations there are.
int CheckContinuations(const std::vector<std::string>& names) {
  int num_checked = 0;
  for (const std::string& name : names) {
    const std::unique_ptr<Engine> engine =
        OpenEngine({.model_path = GoldenModelPath(name), .num_threads = 2});
    if (engine == nullptr) continue;
    for (const GoldenSequence& sequence : ReadGoldenSequences(name)) {
      if (sequence.greedy.empty()) continue;
      GenerationRequest request;
      request.input = sequence.tokens;
      request.max_tokens = static_cast<int>(sequence.greedy.size());
      request.ignore_eos = true;
      std::vector<int32_t> expected;
      for (const TokenId token : sequence.greedy) expected.push_back(token.value);
      EXPECT_EQ(AskAlone(engine.get(), request).ids, expected) << name << " " << sequence.name;
      ++num_checked;
    }
  }
  return num_checked;
}

TEST(Greedy, ContinuesTheGoldenSequencesExactly) {
  EXPECT_EQ(CheckContinuations(GoldenModelNames()), 24);
}

TEST(Greedy, ContinuesTheSequencesOfExportsExactly) {
  EXPECT_EQ(CheckContinuations(GoldenExportNames()), 48);
}

}  // namespace
}  // namespace hadal
