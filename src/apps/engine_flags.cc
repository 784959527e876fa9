#include "apps/engine_flags.h"

#include <cstdint>
#include <map>
#include <string>

#include "apps/name_flag.h"

namespace hadal {
namespace {

constexpr int64_t kMiB = 1 << 20;

const std::map<std::string, VolatileLines> kVolatileLines = {
    {"keep", VolatileLines::kKeep}, {"move", VolatileLines::kMove}, {"drop", VolatileLines::kDrop}};

// A size that is given in MiB and kept in bytes.
void AddMiBOption(CLI::App* command, const std::string& name, int64_t* bytes,
                  const std::string& help) {
  command
      ->add_option_function<int64_t>(
          name, [bytes](int64_t mib) { *bytes = mib * kMiB; }, help)
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30))
      ->default_str(std::to_string(*bytes / kMiB));
}

}  // namespace

void AddCacheDirFlags(CLI::App* command, EngineOptions* options) {
  command->add_option("--cache-dir", options->cache_dir,
                      "Folder in which the cache rows of prompts are kept across restarts");
  AddMiBOption(command, "--cache-dir-mb", &options->max_cache_dir_bytes,
               "Size limit of that folder in MiB");
}

void AddEngineFlags(CLI::App* command, EngineOptions* options) {
  AddCacheDirFlags(command, options);
  command
      ->add_option("--max-sequences", options->runner.max_step_sequences,
                   "Sequences that run at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command
      ->add_option("--cache-tokens", options->runner.cache_tokens,
                   "Tokens that the cache holds (0: some contexts, within the free memory)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  command
      ->add_option(
          "--max-step-ms", options->max_step_ms,
          "Wanted time of a step in which answers go on: prompts are read in chunks cut to "
          "it, so that no stream waits for a stranger's prompt (0: no limit)")
      ->check(CLI::Range(0, 3'600'000))
      ->capture_default_str();
  command
      ->add_option("--max-prompt-step-ms", options->max_prompt_step_ms,
                   "The same for steps that only read prompts (0: no limit)")
      ->check(CLI::Range(0, 3'600'000))
      ->capture_default_str();
  command
      ->add_option("--aging-ms", options->aging_ms,
                   "A request that waits as long is worth one step of priority more")
      ->check(CLI::Range(1, 86'400'000))
      ->capture_default_str();
  command
      ->add_option("--max-pending", options->max_pending_sequences,
                   "Sequences that may run and wait; more are refused")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--max-pending-tokens", options->max_pending_prompt_tokens,
                   "Prompt tokens of these; more are refused")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  command
      ->add_option(
          "--volatile-lines", options->volatile_lines,
          "Lines with dates, times and ids at the top and end of system prompts: keep, move "
          "(behind the tools, so that the rest is found in the cache), or drop")
      ->transform(OneOf(kVolatileLines))
      ->type_name("NAME")
      ->default_str("keep");
  command->add_option("--trace", options->trace_path,
                      "File for spans of steps and answers, to be opened in Perfetto");
  AddMiBOption(command, "--saved-mb", &options->max_saved_bytes,
               "Memory in MiB for the cache rows of sequences that had to make room");
}

}  // namespace hadal
