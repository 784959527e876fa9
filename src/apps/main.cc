#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "apps/commands.h"
#include "apps/interrupt.h"
#include "base/quote.h"
#include "base/status.h"
#include "sys/mapping_registry.h"

namespace {

// The one place that catches: what the standard library throws when memory is short.
hadal::Status RunBody(const hadal::CommandBody& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return hadal::Status::ResourceExhausted(
        "memory: expected enough for this command, found the system out of it");
  } catch (const std::exception& error) {
    return hadal::Status::Internal(hadal::Quoted(error.what()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"hadal: DeepSeek models, exact and fast", "hadal"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "hadal " HADAL_VERSION);
  hadal::CommandBody body;
  hadal::AddBenchCommand(&app, &body);
  hadal::AddChatCommand(&app, &body);
  hadal::AddConvertCommand(&app, &body);
  hadal::AddDoctorCommand(&app, &body);
  hadal::AddEvalCommand(&app, &body);
  hadal::AddInspectCommand(&app, &body);
  hadal::AddListCommand(&app, &body);
  hadal::AddLogitsCommand(&app, &body);
  hadal::AddParseCommand(&app, &body);
  hadal::AddPlanCommand(&app, &body);
  hadal::AddPullCommand(&app, &body);
  hadal::AddQuantizeCommand(&app, &body);
  hadal::AddRemoveCommand(&app, &body);
  hadal::AddRenderCommand(&app, &body);
  hadal::AddRunCommand(&app, &body);
  hadal::AddServeCommand(&app, &body);
  hadal::AddSynthCommand(&app, &body);
  hadal::AddTokenizeCommand(&app, &body);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> rest = app.remaining();
    if (app.get_subcommands().empty() && !rest.empty()) {
      std::fprintf(stderr, "There is no command %s.\n", hadal::Quoted(rest[0]).c_str());
    }
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!body) return 2;
  hadal::InstallMappingFaultHandler();
  const hadal::Status status = RunBody(body);
  if (status.ok()) return 0;
  if (status.code() == hadal::StatusCode::kCancelled) return hadal::kInterruptedExitCode;
  std::fprintf(stderr, "hadal: error: %s\n", status.message().c_str());
  return 1;
}
