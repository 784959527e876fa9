// An engine on a fake runner, with the bundled model's tokenizer or without one.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/check.h"
#include "engine/engine.h"
#include "engine/response_collector.h"
#include "tests/support/fake_runner.h"

namespace hadal {

inline std::unique_ptr<Tokenizer> TinyTokenizer() {
  Result<std::unique_ptr<Tokenizer>> tokenizer =
      Tokenizer::Load(std::string(HADAL_SOURCE_DIR) + "/models/tiny");
  HADAL_CHECK(tokenizer.ok());
  return std::move(tokenizer).value();
}

inline constexpr TokenId kTinyBos{0}, kTinyEos{1};

// Answers every prompt with `reply`, then the end token, whatever was asked.
inline std::function<TokenId(const FakePrefix&)> Reply(std::vector<TokenId> reply) {
  return [reply = std::move(reply)](const FakePrefix& prefix) {
    const size_t i = prefix.tokens.size() - static_cast<size_t>(prefix.num_prompt_tokens);
    return i < reply.size() ? reply[i] : kTinyEos;
  };
}

// With the tokenizer of models/tiny, whose layout is V3.1.
struct TextEngine {
  explicit TextEngine(const std::string& reply, FakeRunnerOptions options = {}) {
    std::unique_ptr<Tokenizer> tokenizer = TinyTokenizer();
    options.vocab_size = 4096;
    options.eos_tokens = {kTinyEos};
    auto fake = std::make_unique<FakeRunner>(options);
    fake->choose = Reply(tokenizer->EncodeWithSpecials(reply));
    runner = fake.get();
    engine = std::make_unique<Engine>(EngineOptions{}, std::move(fake), std::move(tokenizer));
  }

  CollectedChoice Ask(const GenerationRequest& request) {
    const auto stream = engine->Submit(request);
    HADAL_CHECK(stream.ok());
    ResponseCollector collector(1);
    collector.ReadAll(stream.value().get());
    return collector.choices()[0];
  }

  FakeRunner* runner = nullptr;
  std::unique_ptr<Engine> engine;
};

inline EngineOptions OptionsFor(const FakeRunnerOptions& options) {
  EngineOptions engine_options;
  engine_options.runner.max_step_tokens = options.max_step_tokens;
  engine_options.runner.max_step_sequences = options.max_step_sequences;
  return engine_options;
}

// Without a tokenizer.
struct IdEngine {
  explicit IdEngine(const FakeRunnerOptions& options = {})
      : IdEngine(options, OptionsFor(options)) {}
  IdEngine(const FakeRunnerOptions& options, const EngineOptions& engine_options) {
    auto fake = std::make_unique<FakeRunner>(options);
    runner = fake.get();
    engine = std::make_unique<Engine>(engine_options, std::move(fake), nullptr);
  }

  FakeRunner* runner = nullptr;
  std::unique_ptr<Engine> engine;
};

inline std::vector<TokenId> IdsOf(const CollectedChoice& choice) {
  std::vector<TokenId> ids;
  for (const SampledToken& token : choice.tokens) ids.push_back(token.token);
  return ids;
}

inline CollectedChoice ReadOne(ResponseStream* stream) {
  ResponseCollector collector(stream->num_choices());
  collector.ReadAll(stream);
  return collector.choices()[0];
}

inline Conversation AskUser(const std::string& text, bool thinking = false) {
  Conversation conversation;
  conversation.messages.push_back({.role = "user",
                                   .content = text,
                                   .reasoning_content = "",
                                   .tool_calls = {},
                                   .tool_call_id = ""});
  conversation.options.thinking = thinking;
  return conversation;
}

}  // namespace hadal
