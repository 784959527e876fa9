// Engines on real models, and whole answers from them.
#pragma once

#include <bit>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/response_collector.h"

namespace hadal {

inline std::unique_ptr<Engine> OpenEngine(const RunnerOptions& runner) {
  EngineOptions options;
  options.runner = runner;
  auto engine = Engine::Open(options);
  if (!engine.ok()) {
    ADD_FAILURE() << engine.status().message();
    return nullptr;
  }
  return std::move(engine).value();
}

// What must not depend on company: ids, and the bits of their logprobs and of the alternatives'.
struct Answer {
  std::vector<int32_t> ids;
  std::vector<uint32_t> logprob_bits;
  FinishReason finish = FinishReason::kNone;
  int cached_tokens = 0;

  bool operator==(const Answer& other) const {
    return ids == other.ids && logprob_bits == other.logprob_bits && finish == other.finish;
  }
};

inline Answer AnswerOf(const CollectedChoice& choice) {
  Answer answer;
  for (const SampledToken& token : choice.tokens) {
    answer.ids.push_back(token.token.value);
    answer.logprob_bits.push_back(std::bit_cast<uint32_t>(token.logprob));
  }
  for (const TokenLogprob& top : choice.top_logprobs) {
    answer.logprob_bits.push_back(static_cast<uint32_t>(top.token.value));
    answer.logprob_bits.push_back(std::bit_cast<uint32_t>(top.logprob));
  }
  answer.finish = choice.end.finish;
  answer.cached_tokens = choice.end.usage.cached_tokens;
  EXPECT_NE(answer.finish, FinishReason::kError) << choice.end.error;
  return answer;
}

inline Answer Collect(ResponseStream* stream) {
  ResponseCollector collector(stream->num_choices());
  collector.ReadAll(stream);
  return AnswerOf(collector.choices()[0]);
}

// All at once, so that they share steps.
inline std::vector<Answer> AskTogether(Engine* engine,
                                       const std::vector<GenerationRequest>& requests) {
  std::vector<std::shared_ptr<ResponseStream>> streams;
  for (const GenerationRequest& request : requests) {
    auto stream = engine->Submit(request);
    EXPECT_TRUE(stream.ok()) << stream.status().message();
    if (stream.ok()) streams.push_back(stream.value());
  }
  std::vector<Answer> answers;
  for (const auto& stream : streams) answers.push_back(Collect(stream.get()));
  return answers;
}

inline Answer AskAlone(Engine* engine, const GenerationRequest& request) {
  std::vector<Answer> answers = AskTogether(engine, {request});
  return answers.empty() ? Answer() : answers[0];
}

}  // namespace hadal
