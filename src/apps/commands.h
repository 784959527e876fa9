// The commands of the one binary: each is a file that registers a subcommand. docs/commands.md
// describes them.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

#include "base/status.h"

namespace hadal {

// What a chosen command does once the command line is parsed. Errors end the process with code 1
// and one line; kCancelled, after ctrl-C, with code 130 and none.
using CommandBody = std::function<Status()>;

// Each adds a subcommand to `app`; when it is chosen, its callback sets `*body`.
void AddBenchCommand(CLI::App* app, CommandBody* body);
void AddChatCommand(CLI::App* app, CommandBody* body);
void AddConvertCommand(CLI::App* app, CommandBody* body);
void AddDoctorCommand(CLI::App* app, CommandBody* body);
void AddEvalCommand(CLI::App* app, CommandBody* body);
void AddInspectCommand(CLI::App* app, CommandBody* body);
void AddListCommand(CLI::App* app, CommandBody* body);
void AddLogitsCommand(CLI::App* app, CommandBody* body);
void AddParseCommand(CLI::App* app, CommandBody* body);
void AddPlanCommand(CLI::App* app, CommandBody* body);
void AddPullCommand(CLI::App* app, CommandBody* body);
void AddQuantizeCommand(CLI::App* app, CommandBody* body);
void AddRemoveCommand(CLI::App* app, CommandBody* body);
void AddRenderCommand(CLI::App* app, CommandBody* body);
void AddRunCommand(CLI::App* app, CommandBody* body);
void AddServeCommand(CLI::App* app, CommandBody* body);
void AddSynthCommand(CLI::App* app, CommandBody* body);
void AddTokenizeCommand(CLI::App* app, CommandBody* body);

}  // namespace hadal
