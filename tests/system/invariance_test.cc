// A request gives the same bits alone or in company, with any number of threads, in any chunks,
// with a cold or a warm prefix cache. Random requests; the seed is printed with a failure.
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "convert/synthesize.h"
#include "tests/support/golden_model.h"
#include "tests/support/temp_dir.h"
#include "tests/system/open_engine.h"

namespace hadal {
namespace {

constexpr int kNumRequests = 8;

// Small models with grouped weights, written when they are first asked for: all parts that a model
// can have, in sizes that no group divides.
constexpr const char* kGroupedShape = R"({"model_type": "deepseek_v3", "hidden_size": 160,
  "num_hidden_layers": 3, "num_attention_heads": 4, "q_lora_rank": 96, "kv_lora_rank": 64,
  "qk_nope_head_dim": 32, "qk_rope_head_dim": 32, "v_head_dim": 32, "intermediate_size": 352,
  "moe_intermediate_size": 96, "n_routed_experts": 8, "n_shared_experts": 1,
  "num_experts_per_tok": 3, "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1,
  "topk_method": "noaux_tc", "scoring_func": "sigmoid", "norm_topk_prob": true,
  "routed_scaling_factor": 2.5, "vocab_size": 300, "max_position_embeddings": 512})";

std::string GroupedModelPath(const GroupShape& shape) {
  static std::vector<std::unique_ptr<TempDir>> made;
  made.push_back(std::make_unique<TempDir>());
  SynthOptions options;
  options.shape = made.back()->Write("shape", kGroupedShape);
  options.format = shape.format;
  options.group_size = shape.group_size;
  options.has_zero_points = shape.has_zero_points;
  options.num_threads = 1;
  const Result<SynthReport> report = WriteSynthModel(options, made.back()->path(), nullptr);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return made.back()->path();
}

std::string ModelPath(const std::string& name) {
  if (name == "tiny" || name.starts_with("tiny-")) {
    return std::string(HADAL_SOURCE_DIR) + "/models/tiny";
  }
  if (name == "int8") return GroupedModelPath({QuantFormat::kInt8Group, 32, false});
  if (name == "int4") return GroupedModelPath({QuantFormat::kInt4Group, 32, false});
  if (name == "int4-zero") return GroupedModelPath({QuantFormat::kInt4Group, 64, true});
  return GoldenModelPath(name);
}

CacheFormat CacheOf(const std::string& name) {
  if (name == "tiny-bf16-cache") return CacheFormat::kBF16;
  if (name == "tiny-q16-cache") return CacheFormat::kQ16;
  return name == "tiny-q8-cache" ? CacheFormat::kQ8 : CacheFormat::kAuto;
}

// Prompts of 1 to 200 ids, some of them with a common beginning; greedy and sampled, with all kinds
// of settings.
std::vector<GenerationRequest> RandomRequests(int vocab_size, uint32_t seed) {
  std::mt19937 random(seed);
  const auto up_to = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  std::vector<TokenId> common;
  for (int i = 0; i < 130; ++i) common.push_back({up_to(vocab_size)});
  std::vector<GenerationRequest> requests;
  for (int r = 0; r < kNumRequests; ++r) {
    GenerationRequest request;
    std::vector<TokenId> prompt;
    if (r % 2 == 0) prompt.assign(common.begin(), common.begin() + 64 + up_to(66));
    const int own = 1 + up_to(r % 3 == 0 ? 5 : 90);
    for (int i = 0; i < own; ++i) prompt.push_back({up_to(vocab_size)});
    request.input = prompt;
    request.max_tokens = 1 + up_to(24);
    request.ignore_eos = true;
    request.seed = random();
    request.sampling.num_logprobs = 2;
    if (r % 3 != 0) {
      request.sampling.temperature = 0.5f + 0.1f * static_cast<float>(up_to(10));
      request.sampling.top_p = r % 2 == 0 ? 0.9f : 1.0f;
      request.sampling.top_k = up_to(2) * 20;
      request.sampling.min_p = r == 5 ? 0.05f : 0.0f;
    }
    if (r % 4 == 1) {
      request.sampling.repetition_penalty = 1.2f;
      request.sampling.presence_penalty = 0.3f;
      request.sampling.frequency_penalty = 0.2f;
      request.sampling.logit_bias = {{TokenId{up_to(vocab_size)}, 2.0f}};
    }
    requests.push_back(request);
  }
  return requests;
}

class Invariance : public testing::TestWithParam<std::string> {};

TEST_P(Invariance, SameBitsAloneInCompanyInAnyChunksOnAnyThreadsColdOrWarm) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  RunnerOptions options = {
      .model_path = ModelPath(GetParam()), .num_threads = 1, .cache_format = CacheOf(GetParam())};

  // The truth: each request on an engine of its own settings, alone, one after another, cold.
  std::vector<GenerationRequest> requests;
  std::vector<Answer> alone;
  {
    int vocab_size = 0;
    for (int r = 0; r < kNumRequests; ++r) {
      const std::unique_ptr<Engine> engine = OpenEngine(options);
      ASSERT_NE(engine, nullptr);
      if (vocab_size == 0) {
        vocab_size = engine->tokenizer() != nullptr ? engine->tokenizer()->vocab_size()
                                                    : engine->info().vocab_size;
        requests = RandomRequests(vocab_size, seed);
      }
      alone.push_back(AskAlone(engine.get(), requests[static_cast<size_t>(r)]));
      EXPECT_FALSE(alone.back().ids.empty());
      EXPECT_EQ(alone.back().cached_tokens, 0);
    }
  }

  struct Way {
    int threads, chunk;
  };
  for (const Way way : {Way{1, 512}, Way{2, 64}, Way{4, 7}, Way{2, 8}}) {
    options.num_threads = way.threads;
    options.max_step_tokens = way.chunk;
    // A step must have room for every running sequence.
    options.max_step_sequences = std::min(way.chunk, 64);
    const std::unique_ptr<Engine> engine = OpenEngine(options);
    ASSERT_NE(engine, nullptr);
    const std::string what =
        " threads " + std::to_string(way.threads) + " chunk " + std::to_string(way.chunk);
    const std::vector<Answer> together = AskTogether(engine.get(), requests);
    ASSERT_EQ(together.size(), requests.size());
    int num_cached = 0;
    for (size_t r = 0; r < requests.size(); ++r) {
      EXPECT_TRUE(together[r] == alone[r]) << "request " << r << " in company," << what;
      const Answer warm = AskAlone(engine.get(), requests[r]);
      EXPECT_TRUE(warm == alone[r]) << "request " << r << " with a warm cache," << what;
      num_cached += warm.cached_tokens;
    }
    EXPECT_GT(num_cached, 0) << "the warm runs hit nothing, so they show nothing";
  }
}

TEST_P(Invariance, PromptsReadOneTokenAtATimeGiveTheSameBits) {
  const std::string path = ModelPath(GetParam());
  const CacheFormat cache = CacheOf(GetParam());
  const std::unique_ptr<Engine> whole =
      OpenEngine({.model_path = path, .num_threads = 2, .cache_format = cache});
  const std::unique_ptr<Engine> single = OpenEngine({.model_path = path,
                                                     .num_threads = 2,
                                                     .cache_format = cache,
                                                     .max_step_tokens = 1,
                                                     .max_step_sequences = 1});
  ASSERT_NE(whole, nullptr);
  ASSERT_NE(single, nullptr);
  GenerationRequest request = RandomRequests(256, 7)[1];
  EXPECT_TRUE(AskAlone(whole.get(), request) == AskAlone(single.get(), request));
}

// In the absorbed form an answer is computed as a prompt would be: the next turn, which holds it,
// finds it in the cache and gets the bits that a cold cache gives.
TEST(AbsorbedForm, SameBitsInAnyChunksAndWithTheAnswerOfTheLastTurnInTheCache) {
  for (const CacheFormat cache : {CacheFormat::kF32, CacheFormat::kBF16, CacheFormat::kQ16}) {
    RunnerOptions options = {.model_path = ModelPath("tiny"),
                             .num_threads = 2,
                             .attention_form = AttentionForm::kAbsorbed,
                             .cache_format = cache};
    GenerationRequest request = RandomRequests(256, 5)[1];
    std::vector<TokenId> prompt;
    for (int i = 0; i < 150; ++i) prompt.push_back({(i * 31 + i / 7) % 250});
    request.input = prompt;
    request.max_tokens = 100;
    const std::unique_ptr<Engine> engine = OpenEngine(options);
    ASSERT_NE(engine, nullptr);
    const Answer first = AskAlone(engine.get(), request);
    ASSERT_EQ(first.ids.size(), 100u);

    GenerationRequest next = request;
    for (const auto id : first.ids) prompt.push_back(TokenId{id});
    for (int i = 0; i < 30; ++i) prompt.push_back({i + 40});
    next.input = prompt;
    next.max_tokens = 10;
    const Answer warm = AskAlone(engine.get(), next);
    EXPECT_GE(warm.cached_tokens, 192) << "the answer is not found again";
    for (const int chunk : {3, 64, 512}) {
      options.max_step_tokens = chunk;
      options.max_step_sequences = 1;
      options.num_threads = 1;
      const std::unique_ptr<Engine> cold = OpenEngine(options);
      ASSERT_NE(cold, nullptr);
      EXPECT_TRUE(AskAlone(cold.get(), next) == warm) << "chunks of " << chunk;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Invariance,
                         testing::Values("tiny", "tiny-bf16-cache", "tiny-q16-cache",
                                         "tiny-q8-cache", "int8", "int4", "int4-zero",
                                         "v2-lite-f32", "v2-group-f16", "v3-fp8", "v32-fp8-ue8m0"),
                         [](const testing::TestParamInfo<std::string>& param) {
                           std::string name = param.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace hadal
