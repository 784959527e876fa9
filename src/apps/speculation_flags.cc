#include "apps/speculation_flags.h"

#include <map>
#include <memory>
#include <string>

#include "apps/name_flag.h"
#include "batch/speculation.h"

namespace hadal {
namespace {

const std::map<std::string, DrafterKind> kDrafters = {{"none", DrafterKind::kNone},
                                                      {"ngram", DrafterKind::kNgram},
                                                      {"mtp", DrafterKind::kMtp},
                                                      {"model", DrafterKind::kModel}};
const std::map<std::string, bool> kDepths = {{"auto", true}, {"fixed", false}};
const std::map<std::string, DraftAcceptance> kAcceptances = {
    {"exact", DraftAcceptance::kExact}, {"classic", DraftAcceptance::kClassic}};

// Copied text comes in long runs; a module that was trained for one token ahead, and a small model,
// are seldom right much further.
int DefaultTokens(DrafterKind drafter) { return drafter == DrafterKind::kNgram ? 8 : 3; }

// The flags come in any order, so each sets all that follows from those that came.
struct SpeculationFlags {
  DrafterKind drafter = DrafterKind::kNone;
  int num_tokens = 0;
  std::string draft_model;

  void Apply(EngineOptions* options) const {
    const bool is_on = drafter != DrafterKind::kNone;
    options->speculation.drafter = drafter;
    options->speculation.max_drafts = !is_on           ? 0
                                      : num_tokens > 0 ? num_tokens
                                                       : DefaultTokens(drafter);
    DraftingOptions& drafting = options->runner.drafting;
    drafting.max_drafts = options->speculation.max_drafts;
    drafting.has_mtp = drafter == DrafterKind::kMtp;
    drafting.draft_model_path = drafter == DrafterKind::kModel ? draft_model : "";
  }
};

}  // namespace

void AddSpeculationFlags(CLI::App* command, EngineOptions* options) {
  const std::string group = "Speculation (changes the speed, not the answer)";
  auto flags = std::make_shared<SpeculationFlags>();
  command
      ->add_option_function<DrafterKind>(
          "--spec",
          [flags, options](const DrafterKind& drafter) {
            flags->drafter = drafter;
            flags->Apply(options);
          },
          "How to guess ahead: none, ngram (what followed the last words before), mtp (the\n"
          "model's own module), model (a smaller one)")
      ->transform(OneOf(kDrafters))
      ->type_name("NAME")
      ->group(group);
  command
      ->add_option_function<int>(
          "--spec-tokens",
          [flags, options](const int& num_tokens) {
            flags->num_tokens = num_tokens;
            flags->Apply(options);
          },
          "Most tokens to guess per step (default: 8 for ngram, else 3)")
      ->check(CLI::Range(1, kMostDrafts))
      ->group(group);
  command
      ->add_option("--spec-depth", options->speculation.is_adaptive,
                   "auto: as many as pay, none if none does; fixed: always --spec-tokens")
      ->transform(OneOf(kDepths))
      ->type_name("NAME")
      ->default_str("auto")
      ->group(group);
  command
      ->add_option("--spec-accept", options->speculation.acceptance,
                   "exact: the answer is the one without guesses; classic: another draw from the\n"
                   "same distribution (rejection sampling)")
      ->transform(OneOf(kAcceptances))
      ->type_name("NAME")
      ->default_str("exact")
      ->group(group);
  command
      ->add_option_function<std::string>(
          "--draft-model",
          [flags, options](const std::string& path) {
            flags->draft_model = path;
            flags->Apply(options);
          },
          "Folder or file of the smaller model, with --spec model")
      ->group(group);
}

}  // namespace hadal
