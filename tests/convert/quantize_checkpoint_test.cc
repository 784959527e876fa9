#include "convert/quantize_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/random.h"
#include "convert/synthesize.h"
#include "formats/checkpoint.h"
#include "formats/resumable_writer.h"
#include "runner/logits_runner.h"
#include "sys/mapped_file.h"
#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

using testing::HasSubstr;

constexpr int kNumTokens = 12;

// Every kind of matrix: V3.2 with a dense layer, experts, indexer and MTP.
constexpr const char* kShape = R"({"model_type": "deepseek_v32", "hidden_size": 128,
  "num_hidden_layers": 2, "num_nextn_predict_layers": 1, "num_attention_heads": 2,
  "q_lora_rank": 64, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
  "v_head_dim": 32, "intermediate_size": 224, "moe_intermediate_size": 96,
  "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2,
  "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1, "topk_method": "noaux_tc",
  "scoring_func": "sigmoid", "norm_topk_prob": true, "routed_scaling_factor": 2.5,
  "vocab_size": 200, "max_position_embeddings": 256, "index_n_heads": 2, "index_head_dim": 32,
  "index_topk": 16})";

class Quantize : public testing::Test {
 protected:
  void SetUp() override { Make(QuantFormat::kBF16); }

  void Make(QuantFormat format) {
    const std::string shape = other_.Write("shape", kShape);
    ASSERT_TRUE(WriteSynthModel({.shape = shape, .format = format, .num_threads = 2},
                                source_.path(), nullptr)
                    .ok());
    source_.Write("tokenizer_config.json", "{\"a\": 1}");
  }

  QuantizeOptions Options(const GroupShape& shape = {QuantFormat::kInt4Group, 32, false}) const {
    QuantizeOptions options;
    options.source = source_.path();
    options.folder = target_.path();
    options.recipe = Recipe(shape);
    options.num_threads = 2;
    return options;
  }

  static std::vector<std::vector<TokenId>> Calibration() {
    std::vector<std::vector<TokenId>> windows(3);
    for (uint64_t w = 0; w < 3; ++w) {
      for (uint64_t i = 0; i < 40 + 13 * w; ++i) {
        windows[w].push_back({static_cast<int32_t>(RandomBits(w, i) % 200)});
      }
    }
    return windows;
  }

  QuantizeReport Run(const QuantizeOptions& options) {
    const Result<QuantizeReport> report = QuantizeCheckpoint(options, nullptr);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? *report : QuantizeReport();
  }

  static std::vector<TokenId> Strange() {
    std::vector<TokenId> tokens;
    for (int i = 0; i < kNumTokens; ++i) tokens.push_back({i * 7 % 200});
    return tokens;
  }

  // The main model's, row by row.
  static std::vector<float> Logits(const std::string& folder, const std::vector<TokenId>& tokens) {
    RunnerOptions options;
    options.model_path = folder;
    options.num_threads = 1;
    options.activations = ActivationChoice::kFloat32;
    std::vector<float> logits;
    const auto runner = LogitsRunner::Create(options, static_cast<int>(tokens.size()));
    EXPECT_TRUE(runner.ok()) << runner.status().message();
    if (!runner.ok()) return logits;
    EXPECT_TRUE((*runner)
                    ->Run(tokens,
                          [&](const LogitsChunk& chunk) {
                            if (chunk.kind != LogitsKind::kMain) return Status::Ok();
                            logits.insert(logits.end(), chunk.data,
                                          chunk.data + chunk.num_rows * chunk.vocab_size);
                            return Status::Ok();
                          })
                    .ok());
    return logits;
  }

  // Of each token the root of the mean squared difference over that of the wide logits; the median
  // of the tokens, since one whose experts change by the rounding is far from where it was.
  double Distance(const std::vector<TokenId>& tokens = Strange()) const {
    const std::vector<float> wide = Logits(source_.path(), tokens);
    const std::vector<float> rounded = Logits(target_.path(), tokens);
    EXPECT_EQ(wide.size(), rounded.size());
    if (wide.empty() || wide.size() != rounded.size()) return 1e9;
    const size_t row_size = wide.size() / tokens.size();
    std::vector<double> distances;
    for (size_t begin = 0; begin < wide.size(); begin += row_size) {
      double difference = 0.0, size = 0.0;
      for (size_t i = begin; i < begin + row_size; ++i) {
        difference += (double{wide[i]} - rounded[i]) * (double{wide[i]} - rounded[i]);
        size += double{wide[i]} * wide[i];
      }
      distances.push_back(std::sqrt(difference / size));
    }
    std::ranges::sort(distances);
    return distances[distances.size() / 2];
  }

  TempDir source_, target_, other_;
};

TEST_F(Quantize, EightBitsAreCloseAndFourAreNear) {
  Run(Options({QuantFormat::kInt8Group, 32, false}));
  EXPECT_LT(Distance(), 0.03);
  std::filesystem::remove_all(target_.path());
  std::filesystem::create_directory(target_.path());
  Run(Options());
  EXPECT_LT(Distance(), 0.35);
}

TEST_F(Quantize, Fp8SourcesServeToo) {
  Make(QuantFormat::kF8Block128);
  const QuantizeReport report = Run(Options({QuantFormat::kInt8Group, 32, false}));
  EXPECT_LT(Distance(), 0.03);
  const auto target = Checkpoint::Open(target_.path());
  ASSERT_TRUE(target.ok());
  // kv_b stays as it is, with its scales; the scales of rounded matrices are gone.
  EXPECT_NE((*target)->Find("model.layers.1.self_attn.kv_b_proj.weight_scale_inv"), nullptr);
  EXPECT_EQ((*target)->Find("model.layers.1.self_attn.o_proj.weight_scale_inv"), nullptr);
  EXPECT_EQ(static_cast<int>((*target)->tensors().size()), report.num_tensors);
}

TEST_F(Quantize, EveryMatrixOfEveryLayerHasTheFormatOfTheRecipe) {
  Run(Options());
  const auto target = Checkpoint::Open(target_.path());
  ASSERT_TRUE(target.ok()) << target.status().message();
  const auto dtype = [&](const std::string& name) { return (*target)->Find(name)->dtype; };
  for (const std::string name :
       {"lm_head.weight", "model.layers.0.mlp.down_proj.weight",
        "model.layers.1.mlp.experts.3.gate_proj.weight",
        "model.layers.2.mlp.experts.3.down_proj.weight", "model.layers.2.eh_proj.weight",
        "model.layers.2.self_attn.indexer.wq_b.weight",
        "model.layers.1.self_attn.kv_a_proj_with_mqa.weight"}) {
    EXPECT_EQ(dtype(name), DType::kU8) << name;
  }
  for (const std::string name :
       {"model.embed_tokens.weight", "model.layers.1.mlp.gate.weight",
        "model.layers.1.self_attn.indexer.weights_proj.weight", "model.norm.weight"}) {
    EXPECT_EQ(dtype(name), DType::kBF16) << name;
  }
  EXPECT_EQ(dtype("model.layers.1.mlp.gate.e_score_correction_bias"), DType::kF32);
}

TEST_F(Quantize, TheFolderIsAModelLikeAnyOther) {
  const QuantizeReport report = Run(Options());
  EXPECT_FALSE(HasJournal(target_.path()));
  EXPECT_EQ(ReadFile(target_.File("tokenizer_config.json"), 100).value(), "{\"a\": 1}");
  const auto target = Checkpoint::Open(target_.path());
  const Json& quantization = (*target)->config()["quantization_config"];
  EXPECT_EQ(quantization["quant_method"], "hadal");
  EXPECT_EQ(quantization["group_size"], 32);
  EXPECT_DOUBLE_EQ(quantization["bits_per_weight"].get<double>(), report.bits_per_weight);
  EXPECT_GT(report.bits_per_weight, 4.5);
}

// On the text itself: random weights say nothing about any other.
TEST_F(Quantize, ACalibrationBringsTheLogitsOfItsTextNearer) {
  QuantizeOptions options = Options();
  Run(options);
  std::vector<double> plain, calibrated;
  for (const auto& window : Calibration()) plain.push_back(Distance(window));
  std::filesystem::remove_all(target_.path());
  std::filesystem::create_directory(target_.path());
  options.calibration = Calibration();
  Run(options);
  for (const auto& window : Calibration()) calibrated.push_back(Distance(window));
  for (size_t w = 0; w < plain.size(); ++w) EXPECT_LT(calibrated[w], 0.95 * plain[w]) << w;
}

// Ends the work after every number of steps, goes on, and compares with work that was not ended.
TEST_F(Quantize, WorkThatIsEndedAnywhereGoesOnToTheSameBytes) {
  QuantizeOptions options = Options();
  options.calibration = Calibration();
  options.shard_bytes = 60'000;
  TempDir whole;
  options.folder = whole.path();
  Run(options);
  const auto expected = Checkpoint::Open(whole.path());
  ASSERT_TRUE(expected.ok());

  options.folder = target_.path();
  int num_runs = 0;
  for (bool is_ended = true; is_ended; ++num_runs) {
    int steps = 0;
    const Result<QuantizeReport> report = QuantizeCheckpoint(options, [&](int64_t, int64_t) {
      // Each run gets a little further than the one before.
      return ++steps > 7 * (num_runs + 1) ? Status::Cancelled("ended") : Status::Ok();
    });
    is_ended = !report.ok();
    if (is_ended) {
      ASSERT_EQ(report.status().code(), StatusCode::kCancelled);
      ASSERT_TRUE(HasJournal(target_.path()));
    } else {
      EXPECT_GT(report->num_resumed, 0);
    }
    ASSERT_LT(num_runs, 40);
  }
  EXPECT_GT(num_runs, 4);
  const auto found = Checkpoint::Open(target_.path());
  ASSERT_TRUE(found.ok()) << found.status().message();
  for (const TensorInfo& tensor : (*expected)->tensors()) {
    const TensorInfo* same = (*found)->Find(tensor.name);
    ASSERT_NE(same, nullptr) << tensor.name;
    EXPECT_TRUE(std::ranges::equal(tensor.bytes, same->bytes)) << tensor.name;
  }
}

TEST_F(Quantize, RefusesWhatItCannotUse) {
  Run(Options());
  QuantizeOptions again = Options();
  again.source = target_.path();
  again.folder = other_.path();
  EXPECT_THAT(QuantizeCheckpoint(again, nullptr).status().message(),
              HasSubstr("expected wide or FP8 weights, found a quantised model"));
  QuantizeOptions foreign = Options();
  foreign.calibration = {{{5}, {200}}};
  EXPECT_THAT(QuantizeCheckpoint(foreign, nullptr).status().message(),
              HasSubstr("calibration: expected ids from 0 to 199, found 200"));
}

TEST_F(Quantize, AWeightThatIsNotFiniteIsNamed) {
  const std::string path = source_.File("model.safetensors");
  {
    const auto source = Checkpoint::Open(source_.path());
    const TensorInfo* tensor = (*source)->Find("model.layers.1.mlp.experts.2.up_proj.weight");
    const std::byte* at = tensor->bytes.data() + 2 * (128 * 3 + 5);
    // Where these bytes lie in the file.
    const auto file = MappedFile::Open(path);
    const std::string needle(reinterpret_cast<const char*>(at), 32);
    const std::string content(reinterpret_cast<const char*>(file->bytes().data()),
                              file->bytes().size());
    const size_t offset = content.find(needle);
    ASSERT_NE(offset, std::string::npos);
    std::fstream out(path, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(static_cast<std::streamoff>(offset));
    out.write("\xC0\x7F", 2);  // NaN
  }
  EXPECT_THAT(QuantizeCheckpoint(Options(), nullptr).status().message(),
              HasSubstr("\"model.layers.1.mlp.experts.2.up_proj.weight\": row 3, column 5: "
                        "expected a finite number"));
}

}  // namespace
}  // namespace hadal
