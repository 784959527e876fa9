#include "model/expert_router.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/support/files.h"

namespace hadal {
namespace {

struct Choice {
  std::vector<int> ids;
  std::vector<float> weights;
};

Choice Route(const ModelConfig& config, std::vector<float> logits, const std::vector<float>& bias) {
  ExpertRouter router(config);
  std::vector<int32_t> ids(static_cast<size_t>(config.num_experts_per_tok));
  std::vector<float> weights(ids.size());
  router.Route(logits, bias, ids, weights);
  return {{ids.begin(), ids.end()}, weights};
}

std::vector<float> Floats(const Json& list) {
  return list.is_null() ? std::vector<float>() : list.get<std::vector<float>>();
}

void ExpectChoice(const Choice& found, const std::vector<int>& ids,
                  const std::vector<float>& weights, const std::string& what) {
  EXPECT_EQ(found.ids, ids) << what;
  ASSERT_EQ(found.weights.size(), weights.size()) << what;
  for (size_t k = 0; k < weights.size(); ++k) {
    EXPECT_NEAR(found.weights[k], weights[k], 1e-5 * std::max(1.0f, weights[k]))
        << what << " " << k;
  }
}

ModelConfig GateConfig(const Json& inputs) {
  ModelConfig config;
  config.n_routed_experts = static_cast<int>(inputs["logits"].size());
  config.num_experts_per_tok = inputs["top_k"];
  config.routed_scaling_factor = inputs["routed_scaling_factor"];
  config.n_group = inputs.value("n_group", 1);
  config.topk_group = inputs.value("topk_group", 1);
  if (inputs.contains("e_score_correction_bias")) {
    config.topk_method = TopkMethod::kNoauxTc;
    config.scoring_func = ScoringFunc::kSigmoid;
    config.norm_topk_prob = true;
  } else if (config.n_group > 1) {
    config.topk_method = TopkMethod::kGroupLimitedGreedy;
  }
  return config;
}

TEST(ExpertRouter, AgreesWithTheSpecificationsExamples) {
  const Json examples = ReadGoldenJson("spec/model.json");
  int checked = 0;
  for (const char* name : {"gate_v3", "gate_v3_negative_biased", "gate_v2_lite",
                           "gate_v2_group_limited", "gate_ties"}) {
    const Json& inputs = examples.at(name)["inputs"];
    const Json& expected = examples.at(name)["expected"];
    const Json bias = inputs.value("e_score_correction_bias", Json());
    ExpectChoice(Route(GateConfig(inputs), Floats(inputs["logits"]), Floats(bias)), expected["ids"],
                 expected["weights"], name);
    ++checked;
  }
  EXPECT_EQ(checked, 5);
}

// C071, C072, C073. The field's cases list the experts by id: a bias that changes weights, experts
// of dropped groups that are chosen, V2's groups taken by a sum instead of the largest score.
TEST(ExpertRouter, IsNotFooledByTheFieldsCases) {
  const Json cases = ReadGoldenJson("model/gate_vectors.json")["cases"];
  ASSERT_EQ(cases.size(), 4u);
  for (const Json& entry : cases) {
    const Json& params = entry["params"];
    ModelConfig config;
    config.n_routed_experts = static_cast<int>(entry["logits"].size());
    config.num_experts_per_tok = params["k"];
    config.n_group = params.value("groups", 1);
    config.topk_group = params.value("topg", 1);
    config.routed_scaling_factor = params.value("scale", 1.0);
    config.norm_topk_prob = params.value("norm", false);
    const bool is_sigmoid = params["func"] == "sigmoid";
    config.scoring_func = is_sigmoid ? ScoringFunc::kSigmoid : ScoringFunc::kSoftmax;
    config.topk_method = is_sigmoid           ? TopkMethod::kNoauxTc
                         : config.n_group > 1 ? TopkMethod::kGroupLimitedGreedy
                                              : TopkMethod::kGreedy;
    const Choice choice = Route(config, Floats(entry["logits"]), Floats(entry["bias"]));
    std::vector<std::pair<int, float>> by_id;
    for (size_t k = 0; k < choice.ids.size(); ++k)
      by_id.emplace_back(choice.ids[k], choice.weights[k]);
    std::ranges::sort(by_id);
    Choice sorted;
    for (const auto& [id, weight] : by_id) {
      sorted.ids.push_back(id);
      sorted.weights.push_back(weight);
    }
    ExpectChoice(sorted, entry["expect"]["experts"], entry["expect"]["weights"], entry["name"]);
  }
}

TEST(ExpertRouter, GivesValidDistinctIdsForLogitsThatAreNoNumbers) {
  ModelConfig config;
  config.n_routed_experts = 8;
  config.num_experts_per_tok = 4;
  config.n_group = 4;
  config.topk_group = 2;
  config.topk_method = TopkMethod::kNoauxTc;
  config.scoring_func = ScoringFunc::kSigmoid;
  Choice choice = Route(config, std::vector<float>(8, std::numeric_limits<float>::quiet_NaN()),
                        std::vector<float>(8, 0.0f));
  std::ranges::sort(choice.ids);
  EXPECT_EQ(std::ranges::adjacent_find(choice.ids), choice.ids.end());
  EXPECT_GE(choice.ids.front(), 0);
  EXPECT_LT(choice.ids.back(), 8);
}

}  // namespace
}  // namespace hadal
