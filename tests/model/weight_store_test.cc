#include "model/weight_store.h"

#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensor/quantize.h"
#include "tests/support/files.h"
#include "tests/support/model_configs.h"
#include "tests/support/tiny_checkpoint.h"

namespace hadal {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A bound checkpoint; weights point into the mapping.
struct Bound {
  std::unique_ptr<Checkpoint> checkpoint;
  ModelConfig config;
  ModelWeights weights;
};

Result<Bound> Bind(const std::string& path) {
  Bound bound;
  ASSIGN_OR_RETURN(bound.checkpoint, Checkpoint::Open(path));
  ASSIGN_OR_RETURN(bound.config, ModelConfig::Parse(bound.checkpoint->config(), "config.json"));
  ASSIGN_OR_RETURN(bound.weights, BindWeights(*bound.checkpoint, bound.config));
  return bound;
}

Result<Bound> Bind(const TinyCheckpoint& checkpoint, const TempDir& dir) {
  checkpoint.Write(dir);
  return Bind(dir.path());
}

// What the refusal says; empty when the checkpoint binds.
std::string Refusal(const TinyCheckpoint& checkpoint) {
  const TempDir dir;
  return Bind(checkpoint, dir).status().message();
}

TEST(WeightStore, BindsEveryPartOfV32) {
  const TempDir dir;
  TinyCheckpoint tiny(TinyV32Config());
  const auto bound = Bind(tiny, dir);
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  const ModelWeights& weights = bound->weights;
  EXPECT_EQ(weights.embedding.rows, 50);
  EXPECT_EQ(weights.embedding.cols, 32);
  EXPECT_EQ(weights.final_norm.size(), 32u);
  ASSERT_EQ(weights.layers.size(), 2u);
  const AttentionWeights& attention = weights.layers[1].attention;
  EXPECT_TRUE(attention.q.empty());
  EXPECT_EQ(attention.q_b.rows, 24);
  EXPECT_EQ(attention.kv_a.rows, 28);
  EXPECT_EQ(attention.kv_b.rows, 32);
  EXPECT_EQ(attention.out.cols, 16);
  EXPECT_EQ(attention.indexer.q_b.rows, 16);
  EXPECT_EQ(attention.indexer.k_norm_bias.size(), 8u);
  EXPECT_EQ(weights.layers[0].feed_forward.gate.rows, 40);
  EXPECT_TRUE(weights.layers[0].feed_forward.router.empty());
  const FeedForwardWeights& mixture = weights.layers[1].feed_forward;
  EXPECT_EQ(mixture.gate.rows, 12);
  EXPECT_EQ(mixture.router.rows, 4);
  EXPECT_EQ(mixture.correction_bias.size(), 4u);
  ASSERT_EQ(mixture.expert_down.size(), 4u);
  EXPECT_EQ(mixture.expert_down[3].rows, 32);
  ASSERT_TRUE(weights.mtp.has_value());
  EXPECT_EQ(weights.mtp->eh_proj.cols, 64);
  EXPECT_EQ(weights.mtp->layer.feed_forward.expert_up.size(), 4u);

  // Each role got the bytes of its own name.
  const auto expect_bytes = [&](const QuantizedMatrix& matrix, const std::string& name) {
    const auto& expected = tiny.tensors()[name].bytes;
    EXPECT_EQ(std::memcmp(matrix.data, expected.data(), expected.size()), 0) << name;
  };
  expect_bytes(mixture.expert_up[2], "model.layers.1.mlp.experts.2.up_proj.weight");
  expect_bytes(mixture.expert_gate[2], "model.layers.1.mlp.experts.2.gate_proj.weight");
  expect_bytes(mixture.up, "model.layers.1.mlp.shared_experts.up_proj.weight");
  expect_bytes(weights.mtp->embedding, "model.layers.2.embed_tokens.weight");
  expect_bytes(weights.mtp->head, "model.layers.2.shared_head.head.weight");
  const auto& norm = tiny.tensors()["model.layers.1.post_attention_layernorm.weight"].bytes;
  EXPECT_EQ(std::memcmp(weights.layers[1].post_attention_norm.data(), norm.data(), norm.size()), 0);
}

TEST(WeightStore, BindsTheBundledModel) {
  const auto bound = Bind(std::string(HADAL_SOURCE_DIR) + "/models/tiny");
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_EQ(bound->weights.layers.size(), 6u);
  EXPECT_TRUE(bound->weights.mtp.has_value());
}

// C127.
TEST(WeightStore, AllMissingAndMisshapenTensorsAreListedWithCounts) {
  TinyCheckpoint tiny(TinyV32Config());
  const std::string shape_fault = "model.layers.0.self_attn.o_proj.weight";
  tiny.AddRandom(shape_fault, {16, 32});
  const int missing = tiny.Erase("model.layers.1.self_attn.indexer") + tiny.Erase("lm_head");
  ASSERT_EQ(missing, 6);
  EXPECT_THAT(Refusal(tiny),
              AllOf(HasSubstr("6 missing: \"lm_head.weight\" [50, 32]"),
                    HasSubstr("\"model.layers.1.self_attn.indexer.wq_b.weight\" [16, 16]"),
                    HasSubstr("\"model.layers.1.self_attn.indexer.k_norm.bias\" [8]"),
                    HasSubstr("1 of another shape: \"" + shape_fault +
                              "\": expected [32, 16], found [16, 32] in model.safetensors"),
                    HasSubstr("tensors in 1 file;"), Not(HasSubstr("\n"))));
}

// C127.
TEST(WeightStore, AModelWithoutItsLastShardSaysWhatIsThereAndWhatIsNot) {
  const TempDir dir;
  const TinyCheckpoint tiny(TinyV32Config());
  tiny.WriteShards(dir, 3);
  ASSERT_TRUE(Bind(dir.path()).ok());
  std::filesystem::remove(dir.File(TinyCheckpoint::ShardName(2, 3)));
  EXPECT_THAT(Bind(dir.path()).status().message(),
              AllOf(HasSubstr("tensors in 3 files, found "), HasSubstr(" in 2; "),
                    HasSubstr("missing: \"model-00003-of-00003.safetensors\"")));
}

// C077.
TEST(WeightStore, AFileShortOfOneExpertIsRefusedByName) {
  TinyCheckpoint tiny(TinyV32Config());
  ASSERT_EQ(tiny.Erase("model.layers.1.mlp.experts.3.down_proj"), 1);
  EXPECT_THAT(Refusal(tiny),
              HasSubstr("1 missing: \"model.layers.1.mlp.experts.3.down_proj.weight\" [32, 12]"));
}

TEST(WeightStore, AThousandMissingTensorsStayOneReadableLine) {
  const TempDir dir;
  TinyCheckpoint(TinyV32Config()).Write(dir);
  dir.Write("config.json", DumpJson(V3Config()));
  const std::string message = Bind(dir.path()).status().message();
  EXPECT_THAT(message, AllOf(HasSubstr("missing: "), HasSubstr("more"), Not(HasSubstr("\n"))));
  EXPECT_LT(message.size(), 20000u);
}

TEST(WeightStore, AnMtpLayerMayBeAbsentButNotInPart) {
  TinyCheckpoint tiny(TinyV32Config());
  tiny.Erase("model.layers.2.hnorm");
  EXPECT_THAT(Refusal(tiny), HasSubstr("1 missing: \"model.layers.2.hnorm.weight\" [32]"));
  tiny.Erase("model.layers.2.");
  const TempDir dir;
  const auto bound = Bind(tiny, dir);
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_FALSE(bound->weights.mtp.has_value());
}

TEST(WeightStore, MtpFallsBackToTheMainEmbeddingAndHead) {
  TinyCheckpoint tiny(TinyV32Config());
  ASSERT_EQ(
      tiny.Erase("model.layers.2.embed_tokens") + tiny.Erase("model.layers.2.shared_head.head"), 2);
  const TempDir dir;
  const auto bound = Bind(tiny, dir);
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_EQ(bound->weights.mtp->embedding.data, bound->weights.embedding.data);
  EXPECT_EQ(bound->weights.mtp->head.data, bound->weights.head.data);
}

TEST(WeightStore, AnMtpLayerThatTheConfigDoesNotNameIsLeftOut) {
  TinyCheckpoint tiny(TinyV32Config());
  tiny.config()["num_nextn_predict_layers"] = 0;
  const TempDir dir;
  const auto bound = Bind(tiny, dir);
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_FALSE(bound->weights.mtp.has_value());
}

TEST(WeightStore, ATiedHeadIsTheEmbedding) {
  const TempDir dir;
  const auto bound = Bind(TinyCheckpoint(With(TinyV32Config(), "tie_word_embeddings", true)), dir);
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_EQ(bound->weights.head.data, bound->weights.embedding.data);
}

// C064.
TEST(WeightStore, WithoutQueryLatentNoLatentTensorsAreAskedFor) {
  Json config = TinyV32Config();
  for (const char* key : {"index_n_heads", "index_head_dim", "index_topk"}) config.erase(key);
  config["model_type"] = "deepseek_v3";
  config["q_lora_rank"] = nullptr;
  TinyCheckpoint tiny(config);
  EXPECT_FALSE(tiny.tensors().contains("model.layers.0.self_attn.q_a_proj.weight"));
  const TempDir dir;
  const auto bound = Bind(tiny, dir);
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_EQ(bound->weights.layers[0].attention.q.rows, 24);
  EXPECT_TRUE(bound->weights.layers[0].attention.q_a.empty());
}

// An FP8 weight with scales of the given type.
void MakeFp8(TinyCheckpoint* tiny, const std::string& name, DType scale_type,
             const std::vector<std::byte>& scale_bytes) {
  const std::vector<int64_t> shape = tiny->tensors()[name].shape;
  const std::vector<std::byte> codes(static_cast<size_t>(shape[0] * shape[1]), std::byte{0x38});
  tiny->Set(name, DType::kF8E4M3, shape, codes);
  tiny->Set(name + "_scale_inv", scale_type, {1, 1}, scale_bytes);
}

float ScaleOf(const QuantizedMatrix& matrix) {
  float scale = 0;
  std::memcpy(&scale, matrix.scales, sizeof(scale));
  return scale;
}

constexpr const char* kFp8Name = "model.layers.0.mlp.up_proj.weight";

TEST(WeightStore, Fp8ScalesAreHeldExactlyWhateverTheirType) {
  const std::vector<std::pair<DType, std::vector<std::byte>>> types = {
      {DType::kF32, {std::byte{0}, std::byte{0}, std::byte{0x80}, std::byte{0x3E}}},
      {DType::kBF16, {std::byte{0x80}, std::byte{0x3E}}},
      {DType::kF16, {std::byte{0}, std::byte{0x34}}},
      {DType::kF8E8M0, {std::byte{125}}}};
  for (const auto& [type, bytes] : types) {
    SCOPED_TRACE(DTypeName(type));
    TinyCheckpoint tiny(TinyV32Config());
    MakeFp8(&tiny, kFp8Name, type, bytes);
    const TempDir dir;
    const auto bound = Bind(tiny, dir);
    ASSERT_TRUE(bound.ok()) << bound.status().message();
    const QuantizedMatrix& matrix = bound->weights.layers[0].feed_forward.up;
    EXPECT_EQ(matrix.format, QuantFormat::kF8Block128);
    EXPECT_EQ(matrix.scale_stride, 1);
    EXPECT_EQ(ScaleOf(matrix), 0.25f);
  }
}

TEST(WeightStore, U8WithScalesIsFp8) {
  TinyCheckpoint tiny(TinyV32Config());
  MakeFp8(&tiny, kFp8Name, DType::kF8E8M0, {std::byte{125}});
  tiny.tensors()[kFp8Name].dtype = DType::kU8;
  const TempDir dir;
  const auto bound = Bind(tiny, dir);
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_EQ(bound->weights.layers[0].feed_forward.up.format, QuantFormat::kF8Block128);
}

// C081.
TEST(WeightStore, AnE8m0ScaleThatIsNotANumberIsRefused) {
  TinyCheckpoint tiny(TinyV32Config());
  MakeFp8(&tiny, kFp8Name, DType::kF8E8M0, {std::byte{255}});
  EXPECT_THAT(Refusal(tiny), HasSubstr("up_proj.weight_scale_inv\": element 0: expected a finite"));
}

TEST(WeightStore, Fp8WithoutSoundScalesIsRefused) {
  const std::string scale_name = std::string(kFp8Name) + "_scale_inv";
  TinyCheckpoint tiny(TinyV32Config());
  MakeFp8(&tiny, kFp8Name, DType::kF8E8M0, {std::byte{125}});
  tiny.AddRandom(scale_name, {2, 1});
  EXPECT_THAT(Refusal(tiny), HasSubstr(scale_name + "\": expected [1, 1], found [2, 1]"));
  tiny.Set(scale_name, DType::kI8, {1, 1}, std::vector<std::byte>(1));
  EXPECT_THAT(Refusal(tiny), HasSubstr("found I8 in"));
  tiny.tensors().erase(scale_name);
  EXPECT_THAT(Refusal(tiny), HasSubstr("1 missing: \"" + scale_name + "\" [1, 1]"));
}

TEST(WeightStore, TypesThatWeDoNotReadAreRefusedByName) {
  TinyCheckpoint tiny(TinyV32Config());
  tiny.Set("model.norm.weight", DType::kF64, {32}, std::vector<std::byte>(256));
  tiny.Set("lm_head.weight", DType::kI8, {50, 32}, std::vector<std::byte>(1600));
  EXPECT_THAT(Refusal(tiny),
              AllOf(HasSubstr("2 of another type"),
                    HasSubstr("\"model.norm.weight\": expected F32, BF16 or F16, found F64"),
                    HasSubstr("\"lm_head.weight\": expected F32, BF16, F16 or F8_E4M3, found I8")));
}

TEST(WeightStore, NormsInHalfPrecisionBecomeFloat) {
  TinyCheckpoint tiny(TinyV32Config());
  std::vector<uint16_t> bf16(32, FloatToBf16(-1.5f)), fp16(32, FloatToFp16(0.375f));
  tiny.Set("model.norm.weight", DType::kBF16, {32}, std::as_bytes(std::span(bf16)));
  tiny.Set("model.layers.0.input_layernorm.weight", DType::kF16, {32},
           std::as_bytes(std::span(fp16)));
  const TempDir dir;
  const auto bound = Bind(tiny, dir);
  ASSERT_TRUE(bound.ok()) << bound.status().message();
  EXPECT_EQ(bound->weights.final_norm[31], -1.5f);
  EXPECT_EQ(bound->weights.layers[0].input_norm[31], 0.375f);
}

// C087.
TEST(WeightStore, AnotherFileLayoutIsNamed) {
  TinyCheckpoint tiny(TinyV32Config());
  tiny.Erase("model.");
  tiny.AddRandom("layers.0.attn.wkv_a.weight", {28, 32});
  EXPECT_THAT(Refusal(tiny), HasSubstr("found DeepSeek's converted demo layout"));
}

// C079.
TEST(WeightStore, Fp8WeightsWhoseSidesAreNotMultiplesOf128AreScaledRightly) {
  const Json expected = ReadGoldenJson("formats/fp8_block_130x200.json");
  const auto checkpoint = Checkpoint::Open(GoldenPath("formats/fp8_block_130x200.safetensors"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const TensorInfo* weight = (*checkpoint)->Find("w.weight");
  const TensorInfo* scales = (*checkpoint)->Find(ScaleName("w.weight"));
  ASSERT_NE(weight, nullptr);
  ASSERT_NE(scales, nullptr);
  ASSERT_EQ(weight->shape, expected["shape"].get<std::vector<int64_t>>());
  ASSERT_EQ(ScaleShape(weight->shape), scales->shape);
  const QuantizedMatrix matrix = {.format = QuantFormat::kF8Block128,
                                  .rows = 130,
                                  .cols = 200,
                                  .data = weight->bytes.data(),
                                  .scales = scales->bytes.data(),
                                  .scale_stride = 2};
  ASSERT_EQ(expected["points"].size(), 10u);
  for (const Json& point : expected["points"]) {
    const float value = point["value"].get<float>();
    EXPECT_NEAR(ElementAt(matrix, point["row"], point["col"]), value, std::abs(value) * 1e-6f);
  }
  double sum = 0;
  for (const float value : Dequantize(matrix)) sum += value;
  EXPECT_NEAR(sum, expected["sum"].get<double>(), 1e-5);
}

TEST(WeightStore, ScaleShapesAreThoseOfTheSpecification) {
  const Json example = ReadGoldenJson("spec/number_formats.json")["scale_inv_shapes"]["expected"];
  int checked = 0;
  for (const auto& [name, shape] : example.items()) {
    const size_t bracket = name.find('[');
    const Json weight = Json::parse(name.substr(bracket));
    EXPECT_EQ(ScaleShape(weight.get<std::vector<int64_t>>()), shape.get<std::vector<int64_t>>())
        << name;
    ++checked;
  }
  EXPECT_EQ(checked, 11);
}

}  // namespace
}  // namespace hadal
