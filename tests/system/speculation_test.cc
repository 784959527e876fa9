// Guessing ahead never changes an answer: ids, bits of logprobs, text and reason of the end are
// those of plain decoding, whoever guesses, however far, whatever the request asks for, alone and
// in company, with a warm cache and after preemption. Random requests; the seed is printed with a
// failure.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/golden_model.h"
#include "tests/system/open_engine.h"

namespace hadal {
namespace {

std::string PathOf(const std::string& name) {
  return name == "tiny" ? std::string(HADAL_SOURCE_DIR) + "/models/tiny" : GoldenModelPath(name);
}

struct FullAnswer {
  std::vector<Answer> choices;
  std::vector<std::string> texts;
  Usage usage;  // of all choices

  bool operator==(const FullAnswer& other) const {
    return choices == other.choices && texts == other.texts &&
           usage.completion_tokens == other.usage.completion_tokens;
  }
};

FullAnswer CollectAll(ResponseStream* stream) {
  ResponseCollector collector(stream->num_choices());
  collector.ReadAll(stream);
  FullAnswer full;
  for (const CollectedChoice& choice : collector.choices()) {
    full.choices.push_back(AnswerOf(choice));
    full.texts.push_back(choice.content);
    full.usage.completion_tokens += choice.end.usage.completion_tokens;
    full.usage.accepted_prediction_tokens += choice.end.usage.accepted_prediction_tokens;
    full.usage.rejected_prediction_tokens += choice.end.usage.rejected_prediction_tokens;
  }
  return full;
}

std::vector<FullAnswer> AskAll(Engine* engine, const std::vector<GenerationRequest>& requests) {
  std::vector<std::shared_ptr<ResponseStream>> streams;
  for (const GenerationRequest& request : requests) {
    auto stream = engine->Submit(request);
    EXPECT_TRUE(stream.ok()) << stream.status().message();
    if (stream.ok()) streams.push_back(stream.value());
  }
  std::vector<FullAnswer> answers;
  for (const auto& stream : streams) answers.push_back(CollectAll(stream.get()));
  return answers;
}

class RequestMaker {
 public:
  RequestMaker(int vocab_size, bool has_text, uint32_t seed)
      : vocab_size_(vocab_size), has_text_(has_text), random_(seed) {
    for (int i = 0; i < 130; ++i) common_.push_back(Token());
  }

  // With repetitions, so that there is something to copy; some begin alike.
  std::vector<TokenId> Prompt() {
    std::vector<TokenId> prompt;
    if (UpTo(2) == 0) prompt.assign(common_.begin(), common_.begin() + 60 + UpTo(70));
    std::vector<TokenId> phrase;
    for (int i = 2 + UpTo(9); i > 0; --i) phrase.push_back(Token());
    for (int i = 1 + UpTo(6); i > 0; --i) prompt.insert(prompt.end(), phrase.begin(), phrase.end());
    return prompt;
  }

  GenerationRequest Next() {
    GenerationRequest request;
    request.input = Prompt();
    request.max_tokens = UpTo(3) == 0 ? 70 : 1 + UpTo(28);
    request.seed = random_();
    request.ignore_eos = UpTo(2) == 0;
    request.sampling.num_logprobs = UpTo(3);
    if (UpTo(3) > 0) {
      request.sampling.temperature = 0.05f + 0.1f * static_cast<float>(UpTo(10));
      request.sampling.top_p = UpTo(2) == 0 ? 0.9f : 1.0f;
      request.sampling.top_k = UpTo(2) * 20;
      request.sampling.min_p = UpTo(4) == 0 ? 0.05f : 0.0f;
    }
    if (UpTo(3) == 0) {
      request.sampling.repetition_penalty = 1.1f;
      request.sampling.presence_penalty = 0.2f;
      request.sampling.frequency_penalty = 0.1f;
      request.sampling.logit_bias = {{Token(), 3.0f}};
    }
    // End tokens and stop strings fall into accepted runs.
    if (UpTo(3) == 0)
      for (int i = 0; i < 12; ++i) request.stop_tokens.push_back(Token());
    if (has_text_ && UpTo(3) == 0) request.stop = {"e", "the ", "\n"};
    if (UpTo(8) == 0) request.num_choices = 3;
    return request;
  }

 private:
  int UpTo(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  TokenId Token() { return {UpTo(vocab_size_)}; }

  const int vocab_size_;
  const bool has_text_;
  std::mt19937 random_;
  std::vector<TokenId> common_;
};

// Whatever the other requests are, n-grams are wrong where the prompt's phrase ends, and right once
// the only token that can be drawn has been drawn some times.
GenerationRequest WrongThenRight() {
  GenerationRequest request;
  std::vector<TokenId> prompt;
  for (int i = 0; i < 24; ++i) prompt.push_back({20 + i % 6});
  request.input = prompt;
  request.max_tokens = 40;
  request.ignore_eos = true;
  request.sampling.logit_bias = {{TokenId{50}, 100.0f}};
  return request;
}

struct Guesser {
  std::string model;
  DrafterKind drafter = DrafterKind::kNgram;
  std::string draft_model;

  friend void PrintTo(const Guesser& guesser, std::ostream* out) {
    *out << guesser.model << " " << DrafterName(guesser.drafter) << " " << guesser.draft_model;
  }
};

EngineOptions OptionsOf(const Guesser& guesser, int num_drafts) {
  EngineOptions options;
  options.runner = {.model_path = PathOf(guesser.model), .num_threads = 1};
  options.speculation = {
      .drafter = guesser.drafter, .max_drafts = num_drafts, .is_adaptive = false};
  options.runner.drafting = {
      .max_drafts = num_drafts,
      .has_mtp = guesser.drafter == DrafterKind::kMtp,
      .draft_model_path = guesser.draft_model.empty() ? "" : PathOf(guesser.draft_model)};
  return options;
}

std::unique_ptr<Engine> OpenWith(const EngineOptions& options) {
  auto engine = Engine::Open(options);
  if (!engine.ok()) {
    ADD_FAILURE() << engine.status().message();
    return nullptr;
  }
  return std::move(engine).value();
}

class SpeculationOnModels : public testing::TestWithParam<Guesser> {};

TEST_P(SpeculationOnModels, GivesTheAnswersOfPlainDecoding) {
  constexpr int kNumRequests = 16;
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::vector<GenerationRequest> requests;
  std::vector<FullAnswer> plain;
  {
    const std::unique_ptr<Engine> engine = OpenWith(OptionsOf(
        {.model = GetParam().model, .drafter = DrafterKind::kNone, .draft_model = {}}, 0));
    ASSERT_NE(engine, nullptr);
    const bool has_text = engine->tokenizer() != nullptr;
    RequestMaker maker(has_text ? engine->tokenizer()->vocab_size() : engine->info().vocab_size,
                       has_text, seed);
    for (int i = 0; i < kNumRequests; ++i) requests.push_back(maker.Next());
    requests.push_back(WrongThenRight());
    plain = AskAll(engine.get(), requests);
  }

  struct Way {
    int num_drafts, chunk;
    int64_t cache_tokens;  // few: sequences have to leave the cache for a while
    bool is_adaptive;
  };
  int num_accepted = 0, num_rejected = 0;
  for (const Way way : {Way{1, 512, 0, false}, Way{3, 9, 6 * 64, false}, Way{7, 64, 6 * 64, false},
                        Way{5, 512, 0, true}}) {
    SCOPED_TRACE(std::to_string(way.num_drafts) + " drafts, chunk " + std::to_string(way.chunk));
    EngineOptions options = OptionsOf(GetParam(), way.num_drafts);
    options.speculation.is_adaptive = way.is_adaptive;
    options.runner.max_step_tokens = way.chunk;
    options.runner.max_step_sequences = std::min(way.chunk, 16);
    options.runner.cache_tokens = way.cache_tokens;
    const std::unique_ptr<Engine> engine = OpenWith(options);
    ASSERT_NE(engine, nullptr);
    for (const char* how : {"in company", "with a warm cache"}) {
      const std::vector<FullAnswer> answers = AskAll(engine.get(), requests);
      ASSERT_EQ(answers.size(), plain.size());
      for (size_t i = 0; i < answers.size(); ++i) {
        EXPECT_TRUE(answers[i] == plain[i]) << "request " << i << " " << how;
        num_accepted += answers[i].usage.accepted_prediction_tokens;
        num_rejected += answers[i].usage.rejected_prediction_tokens;
      }
    }
    const FullAnswer alone = AskAll(engine.get(), {requests[0]})[0];
    EXPECT_TRUE(alone == plain[0]) << "alone";
  }
  // The modules of golden models are random weights: whether they are ever right is luck.
  const bool can_be_wrong_always =
      GetParam().drafter == DrafterKind::kMtp && GetParam().model != "tiny";
  EXPECT_GT(can_be_wrong_always ? num_rejected : num_accepted, 0) << "this shows nothing";
  // A model that guesses for itself is always right.
  if (GetParam().draft_model != GetParam().model) {
    EXPECT_GT(num_rejected, 0);
  }
}

// Blocks have 64 tokens: two sequences begin with two each, and need a third one before they end.
TEST_P(SpeculationOnModels, GivesTheAnswersOfPlainDecodingAfterPreemption) {
  std::vector<GenerationRequest> requests;
  RequestMaker maker(250, false, 11);
  for (int i = 0; i < 4; ++i) {
    GenerationRequest request = maker.Next();
    std::vector<TokenId> prompt = maker.Prompt();
    while (prompt.size() < 70) {
      const std::vector<TokenId> again = prompt;
      prompt.insert(prompt.end(), again.begin(), again.end());
    }
    prompt.resize(70);
    request.input = prompt;
    request.max_tokens = 80;
    request.num_choices = 1;
    request.ignore_eos = true;
    request.stop_tokens.clear();
    requests.push_back(request);
  }
  const Guesser nobody{.model = GetParam().model, .drafter = DrafterKind::kNone, .draft_model = {}};
  const std::unique_ptr<Engine> plain = OpenWith(OptionsOf(nobody, 0));
  ASSERT_NE(plain, nullptr);
  const std::vector<FullAnswer> expected = AskAll(plain.get(), requests);
  int64_t num_preemptions = 0;
  for (const int64_t saved_bytes : {int64_t{1} << 30, int64_t{0}}) {
    EngineOptions options = OptionsOf(GetParam(), 3);
    options.runner.cache_tokens = 5 * 64;
    options.max_saved_bytes = saved_bytes;
    const std::unique_ptr<Engine> engine = OpenWith(options);
    ASSERT_NE(engine, nullptr);
    const std::vector<FullAnswer> found = AskAll(engine.get(), requests);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_TRUE(found[i] == expected[i]) << "request " << i << " saved bytes " << saved_bytes;
    num_preemptions += engine->metrics().num_preemptions;
  }
  EXPECT_GT(num_preemptions, 0) << "nobody had to leave the cache";
}

INSTANTIATE_TEST_SUITE_P(Models, SpeculationOnModels,
                         testing::Values(Guesser{"tiny", DrafterKind::kNgram, ""},
                                         Guesser{"tiny", DrafterKind::kMtp, ""},
                                         Guesser{"tiny", DrafterKind::kModel, "tiny"},
                                         Guesser{"v2-lite-f32", DrafterKind::kNgram, ""},
                                         Guesser{"v2-lite-f32", DrafterKind::kModel, "v2-lite-f32"},
                                         Guesser{"v3-fp8", DrafterKind::kMtp, ""},
                                         Guesser{"v32-fp8-ue8m0", DrafterKind::kNgram, ""},
                                         Guesser{"v32-fp8-ue8m0", DrafterKind::kMtp, ""},
                                         Guesser{"v32-f32", DrafterKind::kModel, "v32-f32"}),
                         [](const testing::TestParamInfo<Guesser>& param) {
                           std::string name = param.param.model + "_" +
                                              std::string(DrafterName(param.param.drafter));
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// C103: a draft that copies the target was not always accepted.
TEST(Speculation, AModelThatGuessesForItselfIsAlwaysRight) {
  for (const float temperature : {0.0f, 1.0f}) {
    const std::unique_ptr<Engine> engine = OpenWith(
        OptionsOf({.model = "tiny", .drafter = DrafterKind::kModel, .draft_model = "tiny"}, 3));
    ASSERT_NE(engine, nullptr);
    GenerationRequest request;
    request.input = std::string("Long ago, near the old mill, there lived");
    request.max_tokens = 50;
    request.ignore_eos = true;
    request.seed = 7;
    request.sampling.temperature = temperature;
    const FullAnswer answer = AskAll(engine.get(), {request})[0];
    // C106: exactly as many tokens as were asked for.
    EXPECT_EQ(answer.choices[0].ids.size(), 50u);
    EXPECT_EQ(answer.usage.rejected_prediction_tokens, 0) << "temperature " << temperature;
    EXPECT_GE(answer.usage.accepted_prediction_tokens, 35);
  }
}

TEST(Speculation, StructuredTextKeepsItsRulesInsideARun) {
  GenerationRequest request;
  Conversation conversation;
  ChatMessage& message = conversation.messages.emplace_back();
  message.role = "user";
  message.content = "Give me a JSON object with a name and a list of numbers.";
  request.input = conversation;
  request.is_json = true;
  request.max_tokens = 60;
  request.seed = 3;
  request.sampling.temperature = 0.8f;
  const Guesser guesser{.model = "tiny", .drafter = DrafterKind::kMtp, .draft_model = {}};
  const std::unique_ptr<Engine> plain =
      OpenWith(OptionsOf({.model = "tiny", .drafter = DrafterKind::kNone, .draft_model = {}}, 0));
  const std::unique_ptr<Engine> guessing = OpenWith(OptionsOf(guesser, 4));
  ASSERT_NE(plain, nullptr);
  ASSERT_NE(guessing, nullptr);
  int num_accepted = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    request.seed = seed;
    const FullAnswer expected = AskAll(plain.get(), {request})[0];
    const FullAnswer found = AskAll(guessing.get(), {request})[0];
    EXPECT_TRUE(found == expected) << expected.texts[0] << "\n" << found.texts[0];
    num_accepted += found.usage.accepted_prediction_tokens;
  }
  EXPECT_GT(num_accepted, 0);
}

TEST(Speculation, RefusesWhatTheModelCannotDo) {
  auto no_module = Engine::Open(
      OptionsOf({.model = "v2-lite-f32", .drafter = DrafterKind::kMtp, .draft_model = {}}, 2));
  ASSERT_FALSE(no_module.ok());
  EXPECT_NE(no_module.status().message().find("multi-token-prediction"), std::string::npos);
  auto other_words = Engine::Open(
      OptionsOf({.model = "tiny", .drafter = DrafterKind::kModel, .draft_model = "v3-f32"}, 2));
  ASSERT_FALSE(other_words.ok());
  EXPECT_NE(other_words.status().message().find("vocabulary of 4096"), std::string::npos)
      << other_words.status().message();
}

}  // namespace
}  // namespace hadal
