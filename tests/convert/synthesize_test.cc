#include "convert/synthesize.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "formats/checkpoint.h"
#include "model/weight_summary.h"
#include "runner/logits_runner.h"
#include "sys/mapped_file.h"
#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

using testing::HasSubstr;

// All parts that a model can have: V3.2 in sizes that run in a moment.
constexpr const char* kSmallV32 = R"({"model_type": "deepseek_v32", "hidden_size": 128,
  "num_hidden_layers": 6, "num_nextn_predict_layers": 1, "num_attention_heads": 4,
  "q_lora_rank": 64, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
  "v_head_dim": 32, "intermediate_size": 352, "moe_intermediate_size": 96,
  "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2,
  "first_k_dense_replace": 3, "n_group": 2, "topk_group": 1, "topk_method": "noaux_tc",
  "scoring_func": "sigmoid", "norm_topk_prob": true, "routed_scaling_factor": 2.5,
  "vocab_size": 300, "max_position_embeddings": 256, "index_n_heads": 4, "index_head_dim": 32,
  "index_topk": 16, "torch_dtype": "float16"})";

struct Made {
  TempDir dir;
  SynthReport report;
};

void Make(SynthOptions options, Made* made) {
  if (options.shape.empty()) options.shape = made->dir.Write("shape", kSmallV32);
  const Result<SynthReport> report = WriteSynthModel(options, made->dir.path(), nullptr);
  ASSERT_TRUE(report.ok()) << report.status().message();
  made->report = *report;
}

// The root of the mean square of the logits of a few tokens; NaN when the model does not run.
double SizeOfLogits(const std::string& folder) {
  RunnerOptions options;
  options.model_path = folder;
  options.num_threads = 1;
  const std::vector<TokenId> tokens = {{3}, {1}, {4}, {1}, {5}, {9}, {2}, {6}};
  const Result<std::unique_ptr<LogitsRunner>> runner = LogitsRunner::Create(options, 8);
  EXPECT_TRUE(runner.ok()) << runner.status().message();
  if (!runner.ok()) return NAN;
  double squares = 0.0;
  int64_t count = 0;
  const Status status = (*runner)->Run(tokens, [&](const LogitsChunk& chunk) {
    count += int64_t{chunk.num_rows} * chunk.vocab_size;
    for (int64_t i = 0; i < int64_t{chunk.num_rows} * chunk.vocab_size; ++i) {
      squares += double{chunk.data[i]} * chunk.data[i];
    }
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return std::sqrt(squares / static_cast<double>(count));
}

class EveryFormat : public testing::TestWithParam<std::pair<QuantFormat, int>> {};

TEST_P(EveryFormat, MakesAModelThatRunsWithLogitsOfTheOrderOfOne) {
  Made made;
  Make({.format = GetParam().first, .group_size = GetParam().second}, &made);
  const auto checkpoint = Checkpoint::Open(made.dir.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_EQ(static_cast<int>((*checkpoint)->tensors().size()), made.report.num_tensors);
  EXPECT_TRUE(CheckWeightsAreFinite(**checkpoint).ok());
  const double size = SizeOfLogits(made.dir.path());
  EXPECT_GT(size, 0.5);
  EXPECT_LT(size, 2.0);
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryFormat,
                         testing::Values(std::pair{QuantFormat::kBF16, 32},
                                         std::pair{QuantFormat::kF8Block128, 32},
                                         std::pair{QuantFormat::kInt8Group, 64},
                                         std::pair{QuantFormat::kInt4Group, 32},
                                         std::pair{QuantFormat::kInt4Group, 128}));

TEST(Synthesize, ActivationsStayInRangeThroughAllLayersOfV3) {
  Made made;
  Json deep = Json::parse(kSmallV32);
  deep["num_hidden_layers"] = 61;
  const std::string shape = made.dir.Write("deep", DumpJson(deep));
  Make({.shape = shape, .format = QuantFormat::kInt4Group}, &made);
  const double size = SizeOfLogits(made.dir.path());
  EXPECT_GT(size, 0.5);
  EXPECT_LT(size, 2.0);
}

TEST(Synthesize, TheSameSeedMakesTheSameBytesWithAnyThreadsAndShards) {
  Made one, two, other;
  Make({.format = QuantFormat::kInt4Group, .num_threads = 1}, &one);
  Make({.format = QuantFormat::kInt4Group, .num_threads = 3, .shard_bytes = 100'000}, &two);
  Make({.format = QuantFormat::kInt4Group, .seed = 2}, &other);
  EXPECT_EQ(one.report.num_files, 1);
  EXPECT_GT(two.report.num_files, 3);
  const auto a = Checkpoint::Open(one.dir.path()), b = Checkpoint::Open(two.dir.path()),
             c = Checkpoint::Open(other.dir.path());
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  int num_different = 0;
  for (const TensorInfo& tensor : (*a)->tensors()) {
    const TensorInfo* same = (*b)->Find(tensor.name);
    ASSERT_NE(same, nullptr) << tensor.name;
    EXPECT_TRUE(std::ranges::equal(tensor.bytes, same->bytes)) << tensor.name;
    num_different += std::ranges::equal(tensor.bytes, (*c)->Find(tensor.name)->bytes) ? 0 : 1;
  }
  EXPECT_EQ(num_different, static_cast<int>((*a)->tensors().size()));
}

TEST(Synthesize, FewerLayersKeepOneWithExperts) {
  const Result<Json> config = SynthConfig({.shape = "v3", .num_layers = 2, .num_experts = 32});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ((*config)["num_hidden_layers"], 2);
  EXPECT_EQ((*config)["first_k_dense_replace"], 1);
  EXPECT_EQ((*config)["n_routed_experts"], 32);
  EXPECT_EQ((*config)["num_nextn_predict_layers"], 1);
  EXPECT_FALSE(
      SynthConfig({.shape = "v3", .has_mtp = false})->contains("num_nextn_predict_layers"));
}

TEST(Synthesize, TheConfigTellsWhatTheFilesHold) {
  const Result<Json> plain = SynthConfig({.shape = "v3"});
  EXPECT_FALSE(plain->contains("quantization_config"));
  EXPECT_EQ((*plain)["rope_scaling"]["mscale"], 1.0);
  const Result<Json> fp8 = SynthConfig({.shape = "v3", .format = QuantFormat::kF8Block128});
  EXPECT_EQ((*fp8)["quantization_config"]["quant_method"], "fp8");
  const Result<Json> int4 = SynthConfig({.shape = "v3", .format = QuantFormat::kInt4Group});
  EXPECT_EQ((*int4)["quantization_config"]["quant_method"], "hadal");
}

TEST(Synthesize, WhatMakesNoModelIsRefusedByTheRuleItBreaks) {
  EXPECT_THAT(SynthConfig({.shape = "v3", .num_experts = 7}).status().message(),
              HasSubstr("n_group: expected a divisor of n_routed_experts, 7"));
  EXPECT_THAT(SynthConfig({.shape = "v2-lite", .num_experts = 4}).status().message(),
              HasSubstr("num_experts_per_tok: expected at most 4"));
}

// The bars on the memory of weights, embedding and head included.
TEST(Synthesize, GroupedWeightsOfV2LiteTakeTheirShareOfBf16) {
  const auto bytes = [](QuantFormat format, int group_size) {
    const Result<int64_t> size =
        SynthWeightBytes({.shape = "v2-lite", .format = format, .group_size = group_size});
    EXPECT_TRUE(size.ok());
    return static_cast<double>(size.ok() ? *size : 0);
  };
  const double wide = bytes(QuantFormat::kBF16, 32);
  EXPECT_NEAR(wide, 2 * 15'706'484'224.0, 1e6);
  EXPECT_LE(bytes(QuantFormat::kInt4Group, 32) / wide, 0.30);
  EXPECT_LE(bytes(QuantFormat::kInt4Group, 128) / wide, 0.28);
  EXPECT_LE(bytes(QuantFormat::kInt8Group, 32) / wide, 0.55);
}

TEST(Synthesize, AnErrorOfTheProgressEndsTheWorkWithoutAModel) {
  const TempDir dir;
  const std::string shape = dir.Write("shape", kSmallV32);
  const Result<SynthReport> report = WriteSynthModel(
      {.shape = shape}, dir.path(), [](int64_t, int64_t) { return Status::Cancelled("stop"); });
  EXPECT_EQ(report.status().code(), StatusCode::kCancelled);
  EXPECT_FALSE(Checkpoint::Open(dir.path()).ok());
}

}  // namespace
}  // namespace hadal
