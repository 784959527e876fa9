#include <cstdio>

#include <CLI/CLI.hpp>

#include "apps/commands.h"
#include "apps/interrupt.h"
#include "sys/mapping_registry.h"

int main(int argc, char** argv) {
  CLI::App app{"hadal: DeepSeek models, exact and fast", "hadal"};
  app.require_subcommand(1);
  hadal::CommandBody body;
  hadal::AddBenchCommand(&app, &body);
  hadal::AddChatCommand(&app, &body);
  hadal::AddDoctorCommand(&app, &body);
  hadal::AddEvalCommand(&app, &body);
  hadal::AddInspectCommand(&app, &body);
  hadal::AddLogitsCommand(&app, &body);
  hadal::AddParseCommand(&app, &body);
  hadal::AddQuantizeCommand(&app, &body);
  hadal::AddRenderCommand(&app, &body);
  hadal::AddRunCommand(&app, &body);
  hadal::AddServeCommand(&app, &body);
  hadal::AddSynthCommand(&app, &body);
  hadal::AddTokenizeCommand(&app, &body);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!body) return 2;
  hadal::InstallMappingFaultHandler();
  const hadal::Status status = body();
  if (status.ok()) return 0;
  if (status.code() == hadal::StatusCode::kCancelled) return hadal::kInterruptedExitCode;
  std::fprintf(stderr, "hadal: error: %s\n", status.message().c_str());
  return 1;
}
