// hadal list, hadal remove: the models that were pulled.
#include <memory>
#include <string>

#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/hub_flags.h"
#include "apps/units.h"
#include "base/json.h"

namespace hadal {
namespace {

Json AsJson(const StoredModel& model) {
  return {{"name", model.repo.full()},        {"repo", model.repo.id()},
          {"revision", model.repo.revision},  {"commit", model.commit},
          {"pulled_at", model.pulled_at},     {"files", model.num_files},
          {"bytes", model.num_bytes},         {"path", model.folder},
          {"unfinished", model.is_unfinished}};
}

Status RunList(bool has_json) {
  const ModelStore store = PulledModels();
  const std::vector<StoredModel> models = store.List();
  if (has_json) {
    Json list = Json::array();
    for (const StoredModel& model : models) list.push_back(AsJson(model));
    fmt::print("{}\n", DumpJson({{"folder", store.root()}, {"models", std::move(list)}}));
    return Status::Ok();
  }
  if (models.empty()) {
    fmt::print("No models in {}: hadal pull ORG/NAME brings one.\n", store.root());
    return Status::Ok();
  }
  size_t width = 4;
  for (const StoredModel& model : models) width = std::max(width, model.repo.full().size());
  fmt::print("{:<{}}  {:>10}  {:>6}  {:<12}  {:<20}\n", "name", width, "size", "files", "commit",
             "pulled");
  for (const StoredModel& model : models) {
    fmt::print("{:<{}}  {:>10}  {:>6}  {:<12}  {:<20}\n", model.repo.full(), width,
               FormatBytes(model.num_bytes), model.num_files, model.commit.substr(0, 12),
               model.is_unfinished ? "unfinished" : model.pulled_at);
  }
  return Status::Ok();
}

struct RemoveFlags {
  std::string name;
  bool has_json = false;
};

Status RunRemove(const RemoveFlags& flags) {
  ASSIGN_OR_RETURN(const RepoName repo, ParseRepoName(flags.name));
  ASSIGN_OR_RETURN(const int64_t bytes, PulledModels().Remove(repo));
  if (flags.has_json) {
    fmt::print("{}\n", DumpJson({{"name", repo.full()}, {"bytes", bytes}}));
  } else {
    fmt::print("{}: removed, {} are free again\n", repo.full(), FormatBytes(bytes));
  }
  return Status::Ok();
}

}  // namespace

void AddListCommand(CLI::App* app, CommandBody* body) {
  auto has_json = std::make_shared<bool>(false);
  CLI::App* command = app->add_subcommand(
      "list", "List the models that were pulled, and pulls that are unfinished");
  command->add_flag("--json", *has_json, "Print one JSON object");
  command->callback([has_json, body] { *body = [has_json] { return RunList(*has_json); }; });
}

void AddRemoveCommand(CLI::App* app, CommandBody* body) {
  auto flags = std::make_shared<RemoveFlags>();
  CLI::App* command = app->add_subcommand(
      "remove", "Remove a pulled model from the disk, and what an unfinished pull of it left");
  command->add_option("NAME", flags->name, "ORG/NAME or ORG/NAME@REVISION, as `hadal list` says")
      ->required();
  command->add_flag("--json", flags->has_json, "Print one JSON object");
  command->callback([flags, body] { *body = [flags] { return RunRemove(*flags); }; });
}

}  // namespace hadal
