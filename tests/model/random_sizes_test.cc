// hadal against the naive model on models whose every size is drawn: what the lists of odd sizes
// did not think of. HADAL_SEED draws others; a failure prints it with the config.
#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "tests/model/model_under_test.h"

namespace hadal {
namespace {

class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}

  int From(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<uint32_t>(high - low + 1));
  }
  bool Flip() { return From(0, 1) == 1; }
  // Multiples of 32, as releases have them, and now and then any number.
  int Width(int most) { return From(0, 3) == 0 ? From(1, most) : 32 * From(1, most / 32); }
  template <class T>
  T OneOf(std::initializer_list<T> choices) {
    return choices.begin()[From(0, static_cast<int>(choices.size()) - 1)];
  }

 private:
  std::mt19937 random_;
};

Json DrawYarn(Draw* draw) {
  Json yarn = {{"type", "yarn"},
               {"factor", draw->OneOf({1.0, 2.0, 4.0, 40.0})},
               {"original_max_position_embeddings", draw->OneOf({16, 64, 4096})},
               {"beta_fast", 32},
               {"beta_slow", 1}};
  if (draw->Flip()) {
    yarn["mscale"] = draw->OneOf({0.707, 1.0});
    yarn["mscale_all_dim"] = draw->OneOf({0.707, 1.0});
  }
  return yarn;
}

void DrawExperts(ModelFamily family, Draw* draw, Json* config) {
  const bool has_groups = family != ModelFamily::kV2Lite;
  const int num_groups = has_groups ? draw->OneOf({1, 2, 3, 4}) : 1;
  const int group_size = draw->From(2, 9);
  const int kept = draw->From(1, num_groups);
  config->update({{"n_routed_experts", num_groups * group_size},
                  {"n_group", num_groups},
                  {"topk_group", kept},
                  {"num_experts_per_tok", draw->From(1, std::min(8, kept * group_size))},
                  {"n_shared_experts", draw->From(0, 3)},
                  {"moe_intermediate_size", draw->Width(96)},
                  {"routed_scaling_factor", draw->OneOf({1.0, 2.5, 16.0})},
                  {"norm_topk_prob", draw->Flip()}});
}

Json DrawConfig(ModelFamily family, Draw* draw) {
  Json config = SmallConfig(family);
  const int layers = draw->From(1, 4);
  config.update({{"hidden_size", draw->Width(192)},
                 {"num_hidden_layers", layers},
                 {"first_k_dense_replace", draw->From(0, layers)},
                 {"num_attention_heads", draw->From(1, 7)},
                 {"kv_lora_rank", draw->Width(160)},
                 {"qk_nope_head_dim", draw->Width(96)},
                 {"qk_rope_head_dim", 2 * draw->From(1, 32)},
                 {"v_head_dim", draw->Width(128)},
                 {"intermediate_size", draw->Width(256)},
                 {"vocab_size", draw->From(40, 400)},
                 {"rope_theta", draw->OneOf({10000.0, 50000.0})},
                 {"tie_word_embeddings", draw->Flip()},
                 {"rope_scaling", draw->Flip() ? DrawYarn(draw) : Json()}});
  if (family != ModelFamily::kV2Lite) config["q_lora_rank"] = draw->Width(128);
  DrawExperts(family, draw, &config);
  if (family == ModelFamily::kV32) {
    const int rope = config["qk_rope_head_dim"];
    config.update({{"index_n_heads", draw->From(1, 6)},
                   {"index_head_dim", rope + draw->From(0, 64)},
                   {"index_topk", draw->From(1, 40)}});
  }
  return config;
}

TEST(RandomSizes, AgreeWithTheNaiveModel) {
  const char* given = std::getenv("HADAL_SEED");
  const uint32_t seed = given != nullptr ? static_cast<uint32_t>(std::stoul(given)) : 1;
  SCOPED_TRACE("HADAL_SEED=" + std::to_string(seed));
  Draw draw(seed);
  for (int round = 0; round < 8; ++round) {
    const auto family =
        draw.OneOf({ModelFamily::kV2Lite, ModelFamily::kV2, ModelFamily::kV3, ModelFamily::kV32});
    const Json config = DrawConfig(family, &draw);
    RandomModelOptions options;
    options.storage = draw.OneOf({WeightStorage::kF32, WeightStorage::kBF16, WeightStorage::kF16,
                                  WeightStorage::kFp8, WeightStorage::kFp8PowersOfTwo});
    options.num_shards = draw.From(1, 3);
    options.is_misaligned = draw.Flip();
    options.has_mtp_copies = draw.Flip();
    options.seed = seed + static_cast<uint32_t>(round);
    SCOPED_TRACE("round " + std::to_string(round) + ", storage " +
                 std::to_string(static_cast<int>(options.storage)) + ", " + DumpJson(config));
    const ModelUnderTest model(config, options);
    ASSERT_TRUE(model.is_sound());
    const int num_tokens = draw.From(2, 90);
    const ClearSequence sequence = model.DrawSequence(num_tokens, options.seed);
    ASSERT_FALSE(sequence.tokens.empty());
    ExpectAgreement(model, sequence, AllWays({1, draw.From(2, 20), num_tokens}));
    if (HasFailure()) return;  // the first that fails says enough
  }
}

}  // namespace
}  // namespace hadal
