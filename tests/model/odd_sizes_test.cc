// hadal against the naive model on random models of sizes that no release has: the engine may
// assume no size.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/model/model_under_test.h"

namespace hadal {
namespace {

struct OddModel {
  std::string name;
  ModelFamily family = ModelFamily::kV3;
  Json changes;  // of SmallConfig(family), key by key
  RandomModelOptions options = {};
  int num_tokens = 40;
};

void PrintTo(const OddModel& model, std::ostream* out) { *out << model.name; }

std::vector<OddModel> HeadsAndWidths() {
  constexpr ModelFamily kV2Lite = ModelFamily::kV2Lite, kV2 = ModelFamily::kV2,
                        kV3 = ModelFamily::kV3, kV32 = ModelFamily::kV32;
  return {
      // The sizes of a report that V2-Lite fails to load or is wrong.
      {"V2LiteOfRank16AndRope8FailsToLoadOrIsWrong",
       kV2Lite,
       {{"kv_lora_rank", 16},
        {"qk_rope_head_dim", 8},
        {"qk_nope_head_dim", 16},
        {"v_head_dim", 16},
        {"num_experts_per_tok", 2},
        {"n_shared_experts", 2}}},
      {"EverythingIs32WithOneHead",
       kV3,
       {{"hidden_size", 32},
        {"num_attention_heads", 1},
        {"kv_lora_rank", 32},
        {"intermediate_size", 32}}},
      {"EverythingIs96WithThreeHeads",
       kV3,
       {{"hidden_size", 96},
        {"num_attention_heads", 3},
        {"kv_lora_rank", 96},
        {"q_lora_rank", 96},
        {"qk_nope_head_dim", 96},
        {"qk_rope_head_dim", 96},
        {"v_head_dim", 96},
        {"intermediate_size", 288},
        {"moe_intermediate_size", 96}}},
      {"ValuesAreWiderThanKeysWithFiveHeads",
       kV2,
       {{"hidden_size", 160},
        {"num_attention_heads", 5},
        {"kv_lora_rank", 160},
        {"q_lora_rank", 224},
        {"qk_rope_head_dim", 32},
        {"v_head_dim", 160}}},
      {"ValuesAreNarrowerThanKeys",
       kV2Lite,
       {{"hidden_size", 288},
        {"num_attention_heads", 3},
        {"qk_nope_head_dim", 128},
        {"qk_rope_head_dim", 64},
        {"v_head_dim", 32}}},
      {"NarrowRopeAndSevenHeads",
       kV32,
       {{"hidden_size", 224},
        {"num_attention_heads", 7},
        {"qk_rope_head_dim", 16},
        {"kv_lora_rank", 32}}},
      {"VocabularyOf97", kV3, {{"vocab_size", 97}}},
      {"VocabularyOf1000", kV2, {{"vocab_size", 1000}}},
      {"OneLayer", kV3, {{"num_hidden_layers", 1}, {"first_k_dense_replace", 0}}},
      {"AnotherEpsilon", kV32, {{"rms_norm_eps", 1e-2}}},
  };
}

std::vector<OddModel> Layers() {
  constexpr ModelFamily kV2Lite = ModelFamily::kV2Lite, kV2 = ModelFamily::kV2,
                        kV3 = ModelFamily::kV3;
  return {
      {"NoDenseLayer", kV3, {{"first_k_dense_replace", 0}}},
      {"AllLayersDenseByNumber", kV2Lite, {{"first_k_dense_replace", 3}}},
      {"AllLayersDenseForWantOfExperts", kV2Lite, {{"n_routed_experts", nullptr}}},
      {"EverySecondLayerIsAMixture",
       kV3,
       {{"num_hidden_layers", 4}, {"moe_layer_freq", 2}, {"first_k_dense_replace", 1}}},
      {"EverySecondLayerIsAMixtureFromTheFirst",
       kV2,
       {{"num_hidden_layers", 3}, {"moe_layer_freq", 2}, {"first_k_dense_replace", 0}}},
      {"NoSharedExpert", kV3, {{"n_shared_experts", 0}}},
      {"NoSharedExpertByNull", kV2, {{"n_shared_experts", nullptr}}},
      {"ThreeSharedExperts", kV2Lite, {{"n_shared_experts", 3}}},
      {"TiedHead", kV2, {{"tie_word_embeddings", true}}},
      {"TiedHeadBesideMtpCopies", kV3, {{"tie_word_embeddings", true}}},
      {"TiedHeadWithoutMtpCopies", kV3, {{"tie_word_embeddings", true}}, {.has_mtp_copies = false}},
      {"WithoutMtpCopies", kV3, Json::object(), {.has_mtp_copies = false}},
      {"WithoutMtpByConfig", kV3, {{"num_nextn_predict_layers", 0}}},
  };
}

std::vector<OddModel> Routing() {
  constexpr ModelFamily kV2Lite = ModelFamily::kV2Lite, kV2 = ModelFamily::kV2,
                        kV3 = ModelFamily::kV3;
  std::vector<OddModel> models = {
      {"OneExpertOfV2", kV2Lite, {{"n_routed_experts", 1}, {"num_experts_per_tok", 1}}},
      {"OneExpertOfV3",
       kV3,
       {{"n_routed_experts", 1}, {"num_experts_per_tok", 1}, {"n_group", 1}, {"topk_group", 1}}},
      {"TwoExpertsOfWhichBoth",
       kV3,
       {{"n_routed_experts", 2}, {"num_experts_per_tok", 2}, {"n_group", 1}, {"topk_group", 1}}},
      {"FiveExperts",
       kV3,
       {{"n_routed_experts", 5}, {"num_experts_per_tok", 2}, {"n_group", 1}, {"topk_group", 1}}},
      {"SixtyFiveExperts", kV2Lite, {{"n_routed_experts", 65}, {"num_experts_per_tok", 6}}},
      {"ExpertsPastATileEdge",
       kV3,
       {{"hidden_size", 32},
        {"n_routed_experts", 257},
        {"num_experts_per_tok", 8},
        {"n_group", 1},
        {"topk_group", 1}}},
      {"ModelWith384ExpertsIsRefused",
       kV3,
       {{"hidden_size", 32},
        {"num_hidden_layers", 2},
        {"n_routed_experts", 384},
        {"num_experts_per_tok", 8},
        {"n_group", 1},
        {"topk_group", 1}}},
      {"ModelWith512ExpertsIsRefused",
       kV2Lite,
       {{"hidden_size", 32},
        {"num_hidden_layers", 2},
        {"n_routed_experts", 512},
        {"num_experts_per_tok", 8}}},
      {"OneTokenAnd64Experts",
       kV2Lite,
       {{"n_routed_experts", 64}, {"num_experts_per_tok", 6}},
       {},
       1},
      {"TwoGroupsOfWhichOne", kV3, {{"n_group", 2}, {"topk_group", 1}, {"num_experts_per_tok", 4}}},
      {"AllGroupsOfTwoExperts",
       kV3,
       {{"n_routed_experts", 16}, {"n_group", 8}, {"topk_group", 8}, {"num_experts_per_tok", 5}}},
      {"GroupsOfOneExpertInV2",
       kV2,
       {{"n_group", 8}, {"topk_group", 4}, {"num_experts_per_tok", 4}}},
      {"ThreeOfFourGroupsByMaximum",
       kV2,
       {{"n_routed_experts", 12}, {"topk_group", 3}, {"num_experts_per_tok", 6}}},
      {"NormalisedWeightsOfV2", kV2Lite, {{"norm_topk_prob", true}, {"routed_scaling_factor", 3}}},
      {"NormalisedWeightOfOneExpertInV2",
       kV2,
       {{"norm_topk_prob", true}, {"num_experts_per_tok", 1}}},
      {"WeightsOfV3AsTheyAre", kV3, {{"norm_topk_prob", false}}},
  };
  for (int k = 1; k <= 8; ++k) {
    models.push_back({"ChoosesOfEightExperts" + std::to_string(k),
                      k % 2 == 0 ? kV2Lite : kV3,
                      {{"num_experts_per_tok", k}, {"n_group", 1}, {"topk_group", 1}},
                      {},
                      20});
  }
  return models;
}

Json Yarn(const Json& changes) {
  Json yarn = SmallConfig(ModelFamily::kV3)["rope_scaling"];
  for (const auto& [key, value] : changes.items()) {
    yarn[key] = value;
    if (value.is_null()) yarn.erase(key);
  }
  return yarn;
}

std::vector<OddModel> Rope() {
  constexpr ModelFamily kV2Lite = ModelFamily::kV2Lite, kV3 = ModelFamily::kV3,
                        kV32 = ModelFamily::kV32;
  Json newer = Yarn({{"type", nullptr}, {"rope_type", "yarn"}, {"rope_theta", 50000.0}});
  return {
      {"NoRopeScaling", kV2Lite, {{"rope_scaling", nullptr}}},
      {"NoRopeScalingWithIndexer", kV32, {{"rope_scaling", nullptr}}},
      {"MscalesDiffer", kV3, {{"rope_scaling", Yarn({{"mscale", 1.5}, {"mscale_all_dim", 0.5}})}}},
      {"MscaleTurnsTheIndexersKeysOnly",
       kV32,
       {{"rope_scaling", Yarn({{"mscale", 3.0}, {"mscale_all_dim", 0.5}})}}},
      {"MscaleKeysAbsent",
       kV3,
       {{"rope_scaling", Yarn({{"mscale", nullptr}, {"mscale_all_dim", nullptr}})}}},
      {"MscaleAllDimAlone", kV2Lite, {{"rope_scaling", Yarn({{"mscale", nullptr}})}}},
      {"FactorOfOne", kV3, {{"rope_scaling", Yarn({{"factor", 1.0}})}}},
      {"ReleasedYarnOnNarrowHeads",
       kV3,
       {{"qk_rope_head_dim", 8},
        {"rope_scaling", Yarn({{"factor", 40.0}, {"original_max_position_embeddings", 4096}})}}},
      {"YarnWhoseRampHasNoWidth",
       kV3,
       {{"rope_scaling",
         Yarn({{"original_max_position_embeddings", 4}, {"beta_fast", 4}, {"beta_slow", 2}})}}},
      {"NewerSpellingWithThetaInside",
       kV3,
       {{"rope_scaling", nullptr}, {"rope_theta", nullptr}, {"rope_parameters", newer}}},
  };
}

std::vector<OddModel> Storage() {
  constexpr ModelFamily kV2Lite = ModelFamily::kV2Lite, kV2 = ModelFamily::kV2,
                        kV3 = ModelFamily::kV3, kV32 = ModelFamily::kV32;
  // Rows and columns beyond one block of 128 and no multiple of it, everywhere; kv_b's heads start
  // inside blocks.
  const Json ragged = {{"hidden_size", 160},           {"num_attention_heads", 3},
                       {"q_lora_rank", 160},           {"kv_lora_rank", 160},
                       {"qk_nope_head_dim", 32},       {"v_head_dim", 64},
                       {"qk_rope_head_dim", 32},       {"intermediate_size", 288},
                       {"moe_intermediate_size", 160}, {"vocab_size", 97}};
  const auto with_changes = [&](const Json& changes) {
    Json changed = ragged;
    changed.update(changes);
    return changed;
  };
  const auto with_scales_elsewhere = [](WeightStorage storage) {
    return RandomModelOptions{.storage = storage, .num_shards = 3};
  };
  return {
      {"RaggedBlocksOfFp8", kV3, ragged, with_scales_elsewhere(WeightStorage::kFp8)},
      {"RaggedBlocksOfFp8WithPowersOfTwo", kV3, ragged,
       with_scales_elsewhere(WeightStorage::kFp8PowersOfTwo)},
      {"RaggedBlocksOfFp8InTheIndexer", kV32,
       with_changes({{"index_n_heads", 3}, {"index_head_dim", 96}}),
       with_scales_elsewhere(WeightStorage::kFp8)},
      {"Fp8SmallerThanOneBlock", kV3, Json::object(), {.storage = WeightStorage::kFp8}},
      {"Fp8WithoutQueryLatent",
       kV2Lite,
       with_changes({{"q_lora_rank", nullptr}}),
       {.storage = WeightStorage::kFp8}},
      {"OddSizesInBf16", kV2, ragged, {.storage = WeightStorage::kBF16, .num_shards = 2}},
      {"OddSizesInF16", kV3, ragged, {.storage = WeightStorage::kF16}},
      {"DataAtOddOffsetsInF32", kV32, Json::object(), {.is_misaligned = true}},
      {"DataAtOddOffsetsInBf16",
       kV3,
       Json::object(),
       {.storage = WeightStorage::kBF16, .num_shards = 2, .is_misaligned = true}},
      {"DataAtOddOffsetsInFp8",
       kV3,
       Json::object(),
       {.storage = WeightStorage::kFp8, .num_shards = 2, .is_misaligned = true}},
  };
}

class OddSizes : public testing::TestWithParam<OddModel> {};

TEST_P(OddSizes, AgreeWithTheNaiveModelInEveryWay) {
  const OddModel& odd = GetParam();
  Json config = SmallConfig(odd.family);
  config.update(odd.changes);
  const ModelUnderTest model(config, odd.options);
  ASSERT_TRUE(model.is_sound());
  ExpectAgreement(model, model.DrawSequence(odd.num_tokens), AllWays({1, 7, odd.num_tokens}));
}

std::string NameOf(const testing::TestParamInfo<OddModel>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(HeadsAndWidths, OddSizes, testing::ValuesIn(HeadsAndWidths()), NameOf);
INSTANTIATE_TEST_SUITE_P(Layers, OddSizes, testing::ValuesIn(Layers()), NameOf);
INSTANTIATE_TEST_SUITE_P(Routing, OddSizes, testing::ValuesIn(Routing()), NameOf);
INSTANTIATE_TEST_SUITE_P(Rope, OddSizes, testing::ValuesIn(Rope()), NameOf);
INSTANTIATE_TEST_SUITE_P(Storage, OddSizes, testing::ValuesIn(Storage()), NameOf);

}  // namespace
}  // namespace hadal
