// C095 on real models: sequences that had to leave the cache give the same bits, whether their rows
// were kept in memory or computed again.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/golden_model.h"
#include "tests/system/open_engine.h"

namespace hadal {
namespace {

class PreemptionOnModels : public testing::TestWithParam<std::string> {};

std::string PathOf(const std::string& name) {
  return name == "tiny" ? fmt::format("{}/models/tiny", HADAL_SOURCE_DIR) : GoldenModelPath(name);
}

GenerationRequest RandomRequest(uint64_t seed, int vocab_size) {
  GenerationRequest request;
  std::vector<TokenId> prompt;
  for (int i = 0; i < 70; ++i) {
    const uint64_t bits = RandomBits(seed, static_cast<uint64_t>(i));
    prompt.push_back({static_cast<int32_t>(bits % static_cast<uint64_t>(vocab_size))});
  }
  request.input = prompt;
  request.max_tokens = 80;
  request.ignore_eos = true;
  request.sampling.num_logprobs = 1;
  return request;
}

// Blocks have 64 tokens: two sequences begin with two each, and need a third one before they end.
TEST_P(PreemptionOnModels, SameBitsWithRowsKeptAndWithRowsComputedAgain) {
  RunnerOptions runner{.model_path = PathOf(GetParam()), .num_threads = 2, .cache_tokens = 5 * 64};
  std::vector<GenerationRequest> requests;
  std::vector<Answer> alone;
  for (const int64_t saved_bytes : {int64_t{1} << 30, int64_t{0}}) {
    EngineOptions options;
    options.runner = runner;
    options.max_saved_bytes = saved_bytes;
    auto engine = Engine::Open(options);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    if (requests.empty()) {
      for (uint64_t i = 0; i < 4; ++i) requests.push_back(RandomRequest(i, 250));
      for (const GenerationRequest& request : requests)
        alone.push_back(AskAlone(engine.value().get(), request));
    }
    const std::vector<Answer> together = AskTogether(engine.value().get(), requests);
    ASSERT_EQ(together.size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i)
      EXPECT_TRUE(together[i] == alone[i]) << "request " << i << " saved bytes " << saved_bytes;
    const MetricsSnapshot metrics = engine.value()->metrics();
    EXPECT_GT(metrics.num_preemptions, 0) << "nobody had to leave, so this shows nothing";
    EXPECT_EQ(metrics.num_saves, saved_bytes > 0 ? metrics.num_preemptions : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PreemptionOnModels,
                         testing::Values("tiny", "v2-lite-f32", "v32-fp8-ue8m0"),
                         [](const testing::TestParamInfo<std::string>& param) {
                           std::string name = param.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace hadal
