#include "apps/bench_speculation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "apps/median.h"
#include "apps/model_path.h"
#include "base/random.h"
#include "engine/engine.h"
#include "engine/response_collector.h"
#include "sys/mapped_file.h"

namespace hadal {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTextTokens = 48;  // of the text that is generated again
constexpr int kVerificationsAtOnce = 3;
constexpr int64_t kMaxTextBytes = int64_t{64} << 20;
constexpr uint64_t kSeed = 1;
constexpr uint64_t kErrorStream = 40, kTokenStream = 41;

// One sequence, stepped by hand.
class OneSequence {
 public:
  OneSequence(ModelRunner* runner, int depth) : runner_(runner), depth_(depth) {}

  // Computes `tokens` at `position`, of which the last `num_drafts` are guesses, and draws. Returns
  // the seconds; what was drawn is in result().
  Result<double> Step(std::span<const TokenId> tokens, int position, int num_drafts) {
    BatchPlan plan;
    plan.tokens.assign(tokens.begin(), tokens.end());
    const int end = position + static_cast<int>(tokens.size());
    for (int i = 0; i < CeilDiv(end, runner_->info().block_tokens); ++i)
      plan.block_ids.push_back({i});
    SequenceSlice slice{.id = {0}};
    slice.num_tokens = static_cast<int>(tokens.size());
    slice.num_cached = position;
    slice.num_prompt_tokens = depth_;
    slice.num_drafts = num_drafts;
    slice.num_blocks = static_cast<int>(plan.block_ids.size());
    slice.wants_tokens = true;
    // As good as random text, so that no text of few words makes verifying cheap.
    slice.sampling.temperature = 1;
    slice.sampling.seed = kSeed;
    plan.slices.push_back(std::move(slice));
    const Clock::time_point start = Clock::now();
    RETURN_IF_ERROR(runner_->Execute(plan, &result_));
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  std::vector<TokenId> drawn() const {
    std::vector<TokenId> tokens;
    for (const SampledToken& token : result_.tokens) tokens.push_back(token.token);
    return tokens;
  }

  TokenId RandomToken(int position) const {
    const auto vocab_size = static_cast<uint64_t>(runner_->info().vocab_size);
    const uint64_t bits = RandomBits(kSeed, static_cast<uint64_t>(position), kTokenStream);
    return {static_cast<int32_t>(bits % vocab_size)};
  }

 private:
  ModelRunner* const runner_;
  const int depth_;
  StepResult result_;
};

class SpeculationBench {
 public:
  explicit SpeculationBench(const SpeculationBenchOptions& options) : options_(options) {}

  Result<SpeculationReport> Run() {
    RETURN_IF_ERROR(Open());
    RETURN_IF_ERROR(MeasureCosts());
    RETURN_IF_ERROR(DrawText());
    for (const int num_drafts : {3, 7}) {
      for (const double right_rate : {0.5, 0.8, 0.95, 1.0})
        RETURN_IF_ERROR(MeasureCopy(num_drafts, right_rate));
    }
    runner_.reset();
    if (!options_.text_path.empty()) RETURN_IF_ERROR(MeasureModule());
    return std::move(report_);
  }

 private:
  Status Open() {
    RunnerOptions runner = options_.runner;
    runner.max_step_sequences = 1;
    runner.max_step_tokens = std::max(runner.max_step_tokens, kMostVerified);
    runner.cache_tokens = options_.depth + 2 * kTextTokens + kMostVerified;
    ASSIGN_OR_RETURN(runner_, CreateRunner(runner));
    if (options_.depth + 2 * kTextTokens < runner_->info().max_context_tokens) return Status::Ok();
    return Status::InvalidArgument(
        fmt::format("--depth: expected room for {} tokens in a context of {}, found {}",
                    2 * kTextTokens, runner_->info().max_context_tokens, options_.depth));
  }

  // The seconds of verifying n tokens that were not seen before.
  Result<double> Verify(OneSequence* sequence, int n) {
    std::vector<TokenId> tokens;
    tokens.reserve(static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) tokens.push_back(sequence->RandomToken(num_random_tokens_++));
    return sequence->Step(tokens, options_.depth, n - 1);
  }

  // All widths in turn, round after round, so that a busy moment hits all of them.
  Status MeasureCosts() {
    OneSequence sequence(runner_.get(), options_.depth);
    std::vector<std::vector<double>> seconds(kMostVerified);
    for (int round = 0; round <= options_.repetitions; ++round) {
      for (int n = 1; n <= kMostVerified; ++n) {
        ASSIGN_OR_RETURN(const double time, Verify(&sequence, n));
        if (round > 0) seconds[static_cast<size_t>(n - 1)].push_back(time);  // the first warms up
      }
    }
    const double one = Median(seconds[0]);
    for (int n = 1; n <= kMostVerified; ++n) {
      const double median = Median(seconds[static_cast<size_t>(n - 1)]);
      report_.costs.push_back({.num_tokens = n, .median_s = median, .relative = median / one});
    }
    return Status::Ok();
  }

  // The text that is copied later: text_[0] stands at position depth.
  Status DrawText() {
    OneSequence sequence(runner_.get(), options_.depth);
    text_ = {sequence.RandomToken(options_.depth)};
    return Generate(&sequence, 0, 1, &text_).status();
  }

  struct Passage {
    double seconds = 0;
    int num_steps = 0;
    std::array<int, kMostVerified> num_steps_of{};  // by the tokens that they verify, from one on
  };

  // Appends to `text`, which holds its first token, until it has kTextTokens. The drafter knows
  // text_ and errs at a rate.
  Result<Passage> Generate(OneSequence* sequence, int num_drafts, double right_rate,
                           std::vector<TokenId>* text) {
    Passage passage;
    while (static_cast<int>(text->size()) < kTextTokens) {
      const int at = static_cast<int>(text->size()) - 1;
      const int num_left = kTextTokens - static_cast<int>(text->size());
      std::vector<TokenId> tokens = {text->back()};
      for (int i = 1; i <= std::min(num_drafts, num_left - 1); ++i) {
        TokenId guess = text_[static_cast<size_t>(at + i)];
        const double unit = RandomUnit(kSeed, static_cast<uint64_t>(at + i), kErrorStream);
        if (unit >= right_rate) guess.value = (guess.value + 1) % runner_->info().vocab_size;
        tokens.push_back(guess);
      }
      const int num_guesses = static_cast<int>(tokens.size()) - 1;
      ASSIGN_OR_RETURN(const double time, sequence->Step(tokens, options_.depth + at, num_guesses));
      passage.seconds += time;
      ++passage.num_steps;
      ++passage.num_steps_of[tokens.size() - 1];
      for (const TokenId token : sequence->drawn()) text->push_back(token);
    }
    return passage;
  }

  // Copies, and in turn with them the cost of verifying as many tokens: the machine of that moment
  // decides what speed-up follows from the steps that were taken.
  Status MeasureCopy(int num_drafts, double right_rate) {
    OneSequence sequence(runner_.get(), options_.depth);
    std::vector<double> ratios, costs;
    Passage last;
    const int width = num_drafts + 1;
    CopyRun run{.num_drafts = num_drafts, .right_rate = right_rate};
    const int num_rounds = std::clamp(options_.repetitions / 3, 1, 5);
    for (int round = 0; round < num_rounds; ++round) {
      std::vector<TokenId> plain_text = {text_[0]}, text = {text_[0]};
      std::vector<double> one, all;
      const auto verify = [&]() -> Status {
        for (int i = 0; i < kVerificationsAtOnce; ++i) {
          ASSIGN_OR_RETURN(one.emplace_back(), Verify(&sequence, 1));
          ASSIGN_OR_RETURN(all.emplace_back(), Verify(&sequence, width));
        }
        return Status::Ok();
      };
      RETURN_IF_ERROR(verify());
      ASSIGN_OR_RETURN(const Passage plain, Generate(&sequence, 0, 1, &plain_text));
      RETURN_IF_ERROR(verify());
      ASSIGN_OR_RETURN(const Passage guessed, Generate(&sequence, num_drafts, right_rate, &text));
      RETURN_IF_ERROR(verify());
      if (plain_text != text_ || text != text_) {
        return Status::Internal(fmt::format(
            "speculation: expected the same {} tokens with {} guesses per step, found others",
            kTextTokens, num_drafts));
      }
      ratios.push_back(plain.seconds / guessed.seconds);
      costs.push_back(Median(all) / Median(one));
      last = guessed;
      run.tokens_per_step = static_cast<double>(kTextTokens - 1) / guessed.num_steps;
    }
    run.speedup = Median(ratios);
    run.relative_cost = Median(costs);
    run.num_steps_of = last.num_steps_of;
    run.predicted = (kTextTokens - 1) / RelativeTime(last, width, run.relative_cost);
    report_.copies.push_back(run);
    return Status::Ok();
  }

  // What the steps of a passage cost, relative to verifying one token: those of `width` tokens as
  // measured just now, the shorter ones at the text's end as measured before.
  double RelativeTime(const Passage& passage, int width, double cost) const {
    double sum = 0;
    for (int n = 1; n <= width; ++n) {
      const double relative =
          n == width ? cost : report_.costs[static_cast<size_t>(n - 1)].relative;
      sum += passage.num_steps_of[static_cast<size_t>(n - 1)] * relative;
    }
    return sum;
  }

  Result<std::vector<std::string>> ReadTexts() const {
    ASSIGN_OR_RETURN(std::string file, ReadFile(options_.text_path, kMaxTextBytes));
    if (!file.starts_with('[')) return std::vector<std::string>{std::move(file)};
    ASSIGN_OR_RETURN(const Json list, ParseJson(file, options_.text_path));
    std::vector<std::string> texts;
    for (const Json& entry : list) {
      if (!entry.is_string()) {
        return Status::Corrupt(fmt::format("{}: entry {}: expected a text, found {}",
                                           options_.text_path, texts.size(), entry.type_name()));
      }
      texts.push_back(entry.get<std::string>());
    }
    return texts;
  }

  Status MeasureModule() {
    ASSIGN_OR_RETURN(const std::vector<std::string> texts, ReadTexts());
    for (int num_drafts = 1; num_drafts <= 3; ++num_drafts)
      RETURN_IF_ERROR(CountGuesses(texts, num_drafts));
    return Status::Ok();
  }

  // The first half of each text is the prompt.
  Status CountGuesses(const std::vector<std::string>& texts, int num_drafts) {
    EngineOptions options;
    options.runner = options_.runner;
    options.runner.drafting = {.max_drafts = num_drafts, .has_mtp = true};
    options.speculation = {
        .drafter = DrafterKind::kMtp, .max_drafts = num_drafts, .is_adaptive = false};
    ASSIGN_OR_RETURN(options.tokenizer_folder, ModelFolderPath(options.runner.model_path));
    ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, Engine::Open(options));
    if (engine->tokenizer() == nullptr) {
      return Status::Unsupported(fmt::format("{}: expected a tokenizer for the text, found none",
                                             options.runner.model_path));
    }
    std::vector<std::shared_ptr<ResponseStream>> streams;
    for (const std::string& text : texts) {
      std::vector<TokenId> tokens = engine->tokenizer()->EncodeWithSpecials(text);
      if (tokens.size() < 8) continue;
      tokens.resize(std::min<size_t>(tokens.size() / 2, 512));
      GenerationRequest request;
      request.input = std::move(tokens);
      request.max_tokens = 32;
      request.seed = kSeed;
      ASSIGN_OR_RETURN(streams.emplace_back(), engine->Submit(request));
    }
    for (const auto& stream : streams) ResponseCollector(1).ReadAll(stream.get());
    const MetricsSnapshot values = engine->metrics();
    ModuleAcceptance found{.num_drafts = num_drafts, .by_position = {}};
    for (int i = 0; i < num_drafts; ++i) {
      const auto at = static_cast<size_t>(i);
      const auto verified = static_cast<double>(std::max<int64_t>(1, values.num_drafts_at[at]));
      found.by_position.push_back(static_cast<double>(values.num_accepted_at[at]) / verified);
    }
    found.tokens_per_step = 1;
    for (const double share : found.by_position) found.tokens_per_step += share;
    report_.acceptance.push_back(std::move(found));
    return Status::Ok();
  }

  const SpeculationBenchOptions& options_;
  SpeculationReport report_;
  std::unique_ptr<ModelRunner> runner_;
  std::vector<TokenId> text_;
  int num_random_tokens_ = 0;
};

constexpr double kAcceptances[] = {0.3, 0.5, 0.7, 0.8, 0.9, 1.0};

double Speedup(const VerificationCost& cost, double acceptance) {
  return TokensPerStep(cost.num_tokens - 1, acceptance) / cost.relative;
}

}  // namespace

double TokensPerStep(int num_drafts, double acceptance) {
  double sum = 1, product = 1;
  for (int i = 0; i < num_drafts; ++i) sum += product *= acceptance;
  return sum;
}

Result<SpeculationReport> MeasureSpeculation(const SpeculationBenchOptions& options) {
  return SpeculationBench(options).Run();
}

Json SpeculationAsJson(const SpeculationReport& report) {
  Json object = {{"verification", Json::array()},
                 {"speedup", Json::array()},
                 {"copy", Json::array()},
                 {"mtp_acceptance", Json::array()}};
  for (const VerificationCost& cost : report.costs) {
    object["verification"].push_back(
        {{"tokens", cost.num_tokens}, {"median_s", cost.median_s}, {"relative", cost.relative}});
    for (const double acceptance : kAcceptances) {
      object["speedup"].push_back({{"drafts", cost.num_tokens - 1},
                                   {"acceptance", acceptance},
                                   {"speedup", Speedup(cost, acceptance)}});
    }
  }
  for (const CopyRun& run : report.copies) {
    object["copy"].push_back({{"drafts", run.num_drafts},
                              {"right_rate", run.right_rate},
                              {"tokens_per_step", run.tokens_per_step},
                              {"speedup", run.speedup},
                              {"predicted", run.predicted},
                              {"relative_cost", run.relative_cost},
                              {"steps_by_tokens", run.num_steps_of}});
  }
  for (const ModuleAcceptance& found : report.acceptance) {
    object["mtp_acceptance"].push_back({{"drafts", found.num_drafts},
                                        {"by_position", found.by_position},
                                        {"tokens_per_step", found.tokens_per_step}});
  }
  return object;
}

std::string SpeculationAsText(const SpeculationReport& report) {
  std::string text =
      "verifying      ms  relative   speed-up when each guess holds with probability\n"
      "   tokens                    ";
  for (const double acceptance : kAcceptances) text += fmt::format("{:>7.1f}", acceptance);
  text += '\n';
  for (const VerificationCost& cost : report.costs) {
    text += fmt::format("{:>9} {:>7.2f} {:>9.2f}  ", cost.num_tokens, cost.median_s * 1e3,
                        cost.relative);
    for (const double acceptance : kAcceptances)
      text += fmt::format("{:>7.2f}", Speedup(cost, acceptance));
    text += '\n';
  }
  text += "\ncopying: guesses  right  tokens/step  speed-up  predicted\n";
  for (const CopyRun& run : report.copies) {
    text += fmt::format("{:>16} {:>6.2f} {:>12.2f} {:>9.2f} {:>10.2f}\n", run.num_drafts,
                        run.right_rate, run.tokens_per_step, run.speedup, run.predicted);
  }
  if (report.acceptance.empty()) return text;
  text += "\nMTP: guesses  tokens/step  accepted by position\n";
  for (const ModuleAcceptance& found : report.acceptance) {
    text += fmt::format("{:>12} {:>12.2f}  ", found.num_drafts, found.tokens_per_step);
    for (const double share : found.by_position) text += fmt::format("{:>7.3f}", share);
    text += '\n';
  }
  return text;
}

}  // namespace hadal
