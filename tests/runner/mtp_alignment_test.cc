// Which pairs enter the multi-token-prediction module, as the specification's table says it.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runner/batch_builder.h"
#include "runner/loaded_model.h"
#include "tests/support/golden_model.h"

namespace hadal {
namespace {

RunnerOptions GoldenOptions() {
  RunnerOptions options;
  options.model_path = GoldenModelPath("v3-f32");
  options.num_threads = 1;
  options.cache_tokens = 64;
  options.max_step_tokens = 16;
  options.max_step_sequences = 1;
  return options;
}

BatchPlan OnePrompt(const LoadedModel& loaded, const std::vector<TokenId>& tokens) {
  BatchPlan plan;
  plan.tokens = tokens;
  for (int block = 0; block < loaded.cache.num_blocks(); ++block) plan.block_ids.push_back({block});
  plan.slices.push_back({.id = {0},
                         .num_tokens = static_cast<int>(tokens.size()),
                         .num_prompt_tokens = static_cast<int>(tokens.size()),
                         .num_blocks = loaded.cache.num_blocks()});
  return plan;
}

int IndexOf(const Json& name) { return std::stoi(name.get<std::string>().substr(1)); }  // "t3"

// The module's logits for pairs made by hand from the table.
Logits LogitsOfTable(const Json& table, const std::vector<TokenId>& tokens, int num_prompt_tokens) {
  Result<LoadedModel> loaded =
      LoadedModel::Load(GoldenOptions(), {.max_logit_rows = 16, .runs_mtp = true});
  Logits logits;
  if (!loaded.ok()) {
    ADD_FAILURE() << loaded.status().message();
    return logits;
  }
  Activations& activations = loaded->activations;
  BatchBuilder builder(loaded->model->config(), AttentionForm::kAuto, 16, 1);
  const std::vector<TokenId> prompt(tokens.begin(), tokens.begin() + num_prompt_tokens);
  loaded->model->Forward(builder.Build(OnePrompt(*loaded, prompt)), &loaded->cache, &activations);

  std::vector<TokenId> next_tokens;
  for (size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(table[i]["position"].get<size_t>(), i);
    next_tokens.push_back(tokens[static_cast<size_t>(IndexOf(table[i]["embedding_of"]))]);
    const float* hidden = activations.normed.row(IndexOf(table[i]["hidden_of"])).data();
    std::copy_n(hidden, loaded->model->config().hidden_size,
                activations.mtp_hidden.row(static_cast<int>(i)).data());
  }
  loaded->model->ForwardMtp(builder.Build(OnePrompt(*loaded, next_tokens)), &loaded->cache,
                            &activations);
  std::vector<int32_t> rows(table.size());
  std::iota(rows.begin(), rows.end(), 0);
  loaded->model->ComputeMtpLogits(rows, &activations);
  EXPECT_TRUE(loaded->backend->Synchronize().ok());
  logits.num_rows = static_cast<int>(rows.size());
  logits.vocab_size = loaded->model->config().vocab_size;
  for (int r = 0; r < logits.num_rows; ++r) {
    const float* row = activations.logits.row(r).data();
    logits.values.insert(logits.values.end(), row, row + logits.vocab_size);
  }
  return logits;
}

// C107: the module was fed with the hidden state of the wrong position.
TEST(MtpAlignment, PairsTheStateOfATokenWithTheEmbeddingOfTheNext) {
  const Json example = ReadGoldenJson("spec/model.json").at("mtp_alignment");
  const Json& table = example["expected"];
  const auto num_prompt = static_cast<int>(example["inputs"]["prompt"].size());
  ASSERT_EQ(table.size(), static_cast<size_t>(num_prompt));
  const std::vector<TokenId> tokens = {{5}, {17}, {3}, {90}, {41}};  // t0 to t3, sampled t4
  const Logits by_hand = LogitsOfTable(table, tokens, num_prompt);
  const AllLogits found = ComputeLogits(GoldenOptions(), tokens);
  ASSERT_EQ(found.mtp.num_rows, num_prompt);
  EXPECT_TRUE(found.mtp.values == by_hand.values);

  // Row i guesses token i + 2 and so sees nothing behind token i + 1.
  for (size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(IndexOf(table[i]["predicts"]), static_cast<int>(i) + 2);
    std::vector<TokenId> changed = tokens;
    changed[i + 1].value += 1;
    const AllLogits other = ComputeLogits(GoldenOptions(), changed);
    const auto same_until = static_cast<int>(i) * found.mtp.vocab_size;
    EXPECT_TRUE(std::equal(found.mtp.values.begin(), found.mtp.values.begin() + same_until,
                           other.mtp.values.begin()));
    EXPECT_FALSE(std::equal(found.mtp.row(static_cast<int>(i)),
                            found.mtp.row(static_cast<int>(i)) + found.mtp.vocab_size,
                            other.mtp.row(static_cast<int>(i))));
  }
}

}  // namespace
}  // namespace hadal
