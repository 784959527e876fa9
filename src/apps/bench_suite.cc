#include "apps/bench_suite.h"

#include <algorithm>
#include <chrono>
#include <fstream>

#include <fmt/format.h>

#include "apps/median.h"
#include "backend/step_profile.h"
#include "base/random.h"
#include "formats/checkpoint.h"
#include "kernels/dispatch.h"
#include "model/cache_size.h"
#include "model/parameter_count.h"
#include "model/step_cost.h"
#include "runner/loaded_model.h"
#include "sys/machine.h"

namespace hadal {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The process's largest resident set so far, in bytes; 0 when unknown.
double PeakMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) * 1024;
  }
  return 0;
}

// Plans of sequences that stand at a depth. The cache below it is never filled: its content does
// not change how long a step takes.
class StepMaker {
 public:
  StepMaker(const ModelInfo& info, const BenchCase& bench_case) : info_(info), case_(bench_case) {}

  // The next `tokens` tokens of every sequence, from position `begin` on.
  BatchPlan Plan(int begin, int tokens, bool wants_tokens) const {
    BatchPlan plan;
    const bool is_prompt = case_.what == "prefill";
    const int last = case_.depth + case_.tokens + 1;
    const int blocks = CeilDiv(last, info_.block_tokens);
    for (int s = 0; s < case_.batch; ++s) {
      SequenceSlice slice;
      slice.id = {s};
      slice.token_begin = static_cast<int>(plan.tokens.size());
      slice.num_tokens = tokens;
      slice.num_cached = begin;
      slice.num_prompt_tokens = is_prompt ? last : 0;
      slice.block_begin = static_cast<int>(plan.block_ids.size());
      slice.num_blocks = CeilDiv(begin + tokens, info_.block_tokens);
      slice.wants_tokens = wants_tokens;
      for (int t = 0; t < tokens; ++t) {
        const auto position = static_cast<uint64_t>(begin + t);
        const uint64_t bits = RandomBits(static_cast<uint64_t>(s), position);
        plan.tokens.push_back(
            {static_cast<int32_t>(bits % static_cast<uint64_t>(info_.vocab_size))});
      }
      for (int b = 0; b < slice.num_blocks; ++b) plan.block_ids.push_back({s * blocks + b});
      plan.slices.push_back(slice);
    }
    return plan;
  }

 private:
  const ModelInfo& info_;
  const BenchCase& case_;
};

class Bench {
 public:
  Bench(const BenchOptions& options, const std::function<void(const BenchResult&)>& progress)
      : options_(options), progress_(progress) {}

  Result<BenchReport> Run() {
    report_.cpu = ProcessorName();
    RETURN_IF_ERROR(Load());
    for (const BenchCase& bench_case : options_.cases) {
      if (!Fits(bench_case)) continue;
      RETURN_IF_ERROR(Measure(bench_case));
    }
    AddMemory();
    TakeMedianLimits();
    return std::move(report_);
  }

 private:
  // Room for the largest case.
  RunnerOptions Sized() const {
    RunnerOptions sized = options_.runner;
    int64_t tokens = 1;
    int batch = 1;
    for (const BenchCase& c : options_.cases) {
      batch = std::max(batch, c.batch);
      tokens =
          std::max<int64_t>(tokens, int64_t{c.batch} * RoundUp(c.depth + c.tokens + 1, kBlockRoom));
    }
    sized.max_step_sequences = batch;
    sized.max_step_tokens = std::max(sized.max_step_tokens, batch);
    sized.cache_tokens = tokens;
    return sized;
  }

  Status Load() {
    const Clock::time_point start = Clock::now();
    ASSIGN_OR_RETURN(runner_, CreateRunner(Sized()));
    const double seconds = SecondsSince(start);
    ASSIGN_OR_RETURN(checkpoint_, Checkpoint::Open(options_.runner.model_path));
    ASSIGN_OR_RETURN(config_, ModelConfig::Parse(checkpoint_->config(), checkpoint_->path()));
    ASSIGN_OR_RETURN(weights_, BindWeights(*checkpoint_, config_));
    DescribeModel();
    const KernelTable* kernels = FindKernels(report_.model.kernels);
    probe_ = std::make_unique<LimitProbe>(*kernels, report_.model.num_threads);
    BenchResult load;
    load.what = "load";
    load.median_s = seconds;
    load.runs = 1;
    load.bytes = static_cast<double>(report_.model.weight_bytes);
    Keep(load);
    return Status::Ok();
  }

  void DescribeModel() {
    BenchModel& model = report_.model;
    const ParameterCount count = CountParameters(config_);
    model.path = options_.runner.model_path;
    model.model_type = config_.model_type;
    model.kernels = options_.runner.kernels.empty() ? BestKernels().name : options_.runner.kernels;
    model.num_threads =
        options_.runner.num_threads == 0 ? NumUsableCores() : options_.runner.num_threads;
    model.weight_bytes = WeightBytes(weights_);
    model.parameters_total = count.total;
    model.parameters_active = count.active;
    model.bits_per_weight =
        8.0 * static_cast<double>(model.weight_bytes) / static_cast<double>(count.total);
    model.cache_bytes_per_token =
        CacheBytesPerToken(config_, config_.num_hidden_layers, cache_type());
    model.cache_saving = static_cast<double>(config_.num_attention_heads) *
                         (config_.qk_head_dim() + config_.v_head_dim) /
                         static_cast<double>(CachedValuesPerLayer(config_));
  }

  CacheType cache_type() const { return TypeOfCache(options_.runner, *checkpoint_, config_); }

  bool Fits(const BenchCase& c) const {
    const int64_t blocks =
        int64_t{c.batch} * CeilDiv(c.depth + c.tokens + 1, runner_->info().block_tokens);
    return c.depth + c.tokens < runner_->info().max_context_tokens &&
           blocks <= runner_->info().num_cache_blocks;
  }

  Status Measure(const BenchCase& c) {
    std::vector<double> seconds;
    std::vector<MachineLimits> limits = {probe_->Measure()};
    // The first passage warms up: pages are touched, workers woken.
    for (int run = 0; run <= options_.repetitions; ++run) {
      std::vector<double> times;
      RETURN_IF_ERROR(c.what == "prefill" ? Prefill(c, &times) : Decode(c, &times));
      if (run == 0) {
        if (options_.runner.profile != nullptr) options_.runner.profile->Clear();
        continue;
      }
      seconds.insert(seconds.end(), times.begin(), times.end());
      limits.push_back(probe_->Measure());
    }
    BenchResult result = Judge(c, seconds, limits);
    AddOperations(&result);
    Keep(result);
    return Status::Ok();
  }

  Status Prefill(const BenchCase& c, std::vector<double>* seconds) {
    const StepMaker maker(runner_->info(), c);
    double sum = 0;
    for (int done = 0; done < c.tokens;) {
      const int tokens = std::min(options_.runner.max_step_tokens, c.tokens - done);
      const bool is_last = done + tokens == c.tokens;
      ASSIGN_OR_RETURN(const double time, Time(maker.Plan(c.depth + done, tokens, is_last)));
      sum += time;
      done += tokens;
    }
    seconds->push_back(sum);
    return Status::Ok();
  }

  Status Decode(const BenchCase& c, std::vector<double>* seconds) {
    const StepMaker maker(runner_->info(), c);
    for (int step = 0; step < c.tokens; ++step) {
      ASSIGN_OR_RETURN(const double time, Time(maker.Plan(c.depth + step, 1, true)));
      seconds->push_back(time);
    }
    return Status::Ok();
  }

  Result<double> Time(const BatchPlan& plan) {
    const Clock::time_point start = Clock::now();
    RETURN_IF_ERROR(runner_->Execute(plan, &result_));
    return SecondsSince(start);
  }

  BenchResult Judge(const BenchCase& c, const std::vector<double>& seconds,
                    const std::vector<MachineLimits>& limits) const {
    BenchResult result;
    result.what = c.what;
    result.batch = c.batch;
    result.depth = c.depth;
    result.tokens = c.what == "prefill" ? c.tokens : 1;
    result.median_s = Median(seconds);
    result.runs = static_cast<int>(seconds.size());
    result.tokens_per_s = c.batch * result.tokens / result.median_s;
    for (const MachineLimits& limit : limits) {
      result.limits.read_bytes_per_s =
          std::max(result.limits.read_bytes_per_s, limit.read_bytes_per_s);
      result.limits.integer_ops_per_s =
          std::max(result.limits.integer_ops_per_s, limit.integer_ops_per_s);
      result.limits.multiply_add_ops_per_s =
          std::max(result.limits.multiply_add_ops_per_s, limit.multiply_add_ops_per_s);
    }
    const StepCost cost =
        CostOfStep(config_, weights_,
                   {.num_sequences = c.batch,
                    .tokens_per_sequence = result.tokens,
                    .num_cached = c.depth,
                    .logit_rows = c.batch,
                    .is_absorbed = c.what == "decode",
                    .cache_row_bytes = CacheBytesPerToken(config_, 1, cache_type())});
    result.bytes = cost.bytes();
    result.ops = cost.ops();
    const bool is_grouped =
        (config_.has_grouped_weights || checkpoint_->notes().container == "gguf" ||
         config_.packed_scheme.method != PackedMethod::kNone) &&
        !KeepsFloatActivations(options_.runner, *checkpoint_, config_);
    const double rate =
        is_grouped ? result.limits.integer_ops_per_s : result.limits.multiply_add_ops_per_s;
    const double reading = result.bytes / result.limits.read_bytes_per_s;
    const double arithmetic = result.ops / rate;
    result.bound_s = std::max(reading, arithmetic);
    result.bound_by = reading >= arithmetic ? "reading" : "arithmetic";
    result.share_of_bound = result.bound_s / result.median_s;
    return result;
  }

  void AddOperations(BenchResult* result) const {
    if (options_.runner.profile == nullptr) return;
    for (const StepProfile::Entry& entry : options_.runner.profile->entries()) {
      result->operations.emplace_back(entry.name, entry.seconds / result->runs);
    }
  }

  void AddMemory() {
    BenchResult memory;
    memory.what = "memory";
    memory.bytes = PeakMemory();
    memory.runs = 1;
    Keep(memory);
  }

  void TakeMedianLimits() {
    std::vector<double> read, integer, multiply_add;
    std::string_view kernels;
    for (const BenchResult& result : report_.results) {
      if (result.limits.read_bytes_per_s == 0) continue;
      kernels = result.limits.kernels;
      read.push_back(result.limits.read_bytes_per_s);
      integer.push_back(result.limits.integer_ops_per_s);
      multiply_add.push_back(result.limits.multiply_add_ops_per_s);
    }
    if (read.empty()) {
      report_.limits = probe_->Measure();
      return;
    }
    report_.limits = {.kernels = kernels,
                      .read_bytes_per_s = Median(read),
                      .multiply_add_ops_per_s = Median(multiply_add),
                      .integer_ops_per_s = Median(integer)};
  }

  void Keep(const BenchResult& result) {
    progress_(result);
    report_.results.push_back(result);
  }

  static constexpr int kBlockRoom = 64;  // tokens of a block, at most

  const BenchOptions& options_;
  const std::function<void(const BenchResult&)>& progress_;
  BenchReport report_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<Checkpoint> checkpoint_;
  ModelConfig config_;
  ModelWeights weights_;
  std::unique_ptr<LimitProbe> probe_;
  StepResult result_;
};

}  // namespace

Result<std::vector<BenchCase>> CasesOfSuite(const std::string& suite) {
  const std::vector<BenchCase> prefill = {
      {"prefill", 1, 0, 128}, {"prefill", 1, 0, 512}, {"prefill", 1, 0, 2048}};
  const std::vector<BenchCase> depth = {
      {"decode", 1, 0, 8},     {"decode", 1, 2048, 8}, {"decode", 1, 8192, 8},
      {"decode", 1, 32768, 4}, {"prefill", 1, 0, 512}, {"prefill", 1, 8192, 512},
  };
  std::vector<BenchCase> batch;
  for (const int size : {1, 2, 4, 8, 16, 32, 64}) batch.push_back({"decode", size, 0, 8});
  const std::vector<BenchCase> quick = {
      {"prefill", 1, 0, 512}, {"decode", 1, 0, 16}, {"decode", 1, 2048, 8}, {"decode", 8, 0, 8}};
  if (suite == "quick") return quick;
  if (suite == "prefill") return prefill;
  if (suite == "decode") return std::vector<BenchCase>{{"decode", 1, 0, 32}};
  if (suite == "batch") return batch;
  if (suite == "depth") return depth;
  if (suite == "full") {
    std::vector<BenchCase> all = prefill;
    all.insert(all.end(), depth.begin(), depth.end() - 2);
    all.push_back({"prefill", 1, 8192, 512});
    all.insert(all.end(), batch.begin() + 1, batch.end());
    return all;
  }
  return Status::InvalidArgument(fmt::format(
      "suite: expected quick, prefill, decode, batch, depth or full, found '{}'", suite));
}

Result<BenchReport> RunBench(const BenchOptions& options,
                             const std::function<void(const BenchResult&)>& progress) {
  return Bench(options, progress).Run();
}

}  // namespace hadal
