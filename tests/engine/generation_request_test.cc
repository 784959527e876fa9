#include "engine/generation_request.h"

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace hadal {
namespace {

TEST(GenerationRequest, AcceptsTheEdges) {
  GenerationRequest request;
  request.sampling.temperature = 0;
  request.sampling.top_p = 0;
  request.sampling.top_k = -3;
  request.sampling.min_p = 1;
  request.sampling.num_logprobs = 0;
  request.sampling.logit_bias = {{TokenId{99}, -100.0f}};
  request.max_tokens = 1;
  request.stop = {"x"};
  request.stop_tokens = {TokenId{0}};
  EXPECT_TRUE(CheckGenerationRequest(request, 100).ok());
}

// C044, C057: max_tokens 0 meant no limit; ids outside of the vocabulary killed the engine. Each
// fault names its field.
TEST(GenerationRequest, RefusesWhatIsOutOfRangeAndNamesTheField) {
  using Fault = std::function<void(GenerationRequest*)>;
  const std::vector<std::pair<std::string, Fault>> faults = {
      {"temperature", [](auto* r) { r->sampling.temperature = -1; }},
      {"temperature", [](auto* r) { r->sampling.temperature = NAN; }},
      {"temperature", [](auto* r) { r->sampling.temperature = INFINITY; }},
      {"top_p", [](auto* r) { r->sampling.top_p = 1.5f; }},
      {"min_p", [](auto* r) { r->sampling.min_p = -0.1f; }},
      {"repetition_penalty", [](auto* r) { r->sampling.repetition_penalty = 0; }},
      {"presence_penalty", [](auto* r) { r->sampling.presence_penalty = NAN; }},
      {"frequency_penalty", [](auto* r) { r->sampling.frequency_penalty = 1e9f; }},
      {"logprobs", [](auto* r) { r->sampling.num_logprobs = 101; }},
      {"logit_bias",
       [](auto* r) {
         r->sampling.logit_bias = {{TokenId{100}, 1.0f}};
       }},
      {"logit_bias",
       [](auto* r) {
         r->sampling.logit_bias = {{TokenId{-1}, 1.0f}};
       }},
      {"logit_bias",
       [](auto* r) {
         r->sampling.logit_bias = {{TokenId{1}, NAN}};
       }},
      {"n", [](auto* r) { r->num_choices = 0; }},
      {"n", [](auto* r) { r->num_choices = 1000000; }},
      {"max_tokens", [](auto* r) { r->max_tokens = 0; }},
      {"max_tokens", [](auto* r) { r->max_tokens = -7; }},
      {"stop", [](auto* r) { r->stop = {""}; }},
      {"stop", [](auto* r) { r->stop.assign(1000, "x"); }},
      {"stop_token_ids", [](auto* r) { r->stop_tokens = {TokenId{100}}; }},
  };
  for (const auto& [field, fault] : faults) {
    GenerationRequest request;
    fault(&request);
    const Status status = CheckGenerationRequest(request, 100);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << field;
    EXPECT_TRUE(status.message().starts_with(field + ":")) << status.message();
    EXPECT_NE(status.message().find("expected"), std::string::npos) << status.message();
  }
}

TEST(GenerationRequest, TakesOnlyDraftersThatWereLoadedAndTheirLimit) {
  ModelInfo info;
  const Speculation ngram{.drafter = DrafterKind::kNgram, .max_drafts = 3};
  EXPECT_TRUE(CheckSpeculation({}, info).ok());
  EXPECT_FALSE(CheckSpeculation(ngram, info).ok());
  info.max_drafts = 3;
  EXPECT_TRUE(CheckSpeculation(ngram, info).ok());
  EXPECT_FALSE(CheckSpeculation({.drafter = DrafterKind::kNgram, .max_drafts = 4}, info).ok());
  const Speculation mtp{.drafter = DrafterKind::kMtp, .max_drafts = 1};
  EXPECT_NE(CheckSpeculation(mtp, info).message().find("found mtp"), std::string::npos);
  info.drafts_with_mtp = true;
  EXPECT_TRUE(CheckSpeculation(mtp, info).ok());
}

}  // namespace
}  // namespace hadal
