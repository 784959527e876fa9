// hadal serve: the HTTP server. docs/server.md.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "apps/commands.h"
#include "apps/engine_flags.h"
#include "apps/interrupt.h"
#include "apps/layout_choice.h"
#include "apps/model_path.h"
#include "apps/open_engine.h"
#include "apps/runner_flags.h"
#include "apps/speculation_flags.h"
#include "engine/engine.h"
#include "server/api_handler.h"
#include "server/http_server.h"
#include "sys/machine.h"
#include "sys/mapped_file.h"
#include "sys/read_probe.h"
#include "sys/thread_pool.h"

namespace hadal {
namespace {

constexpr int64_t kMaxKeyFileBytes = int64_t{1} << 20;

struct ServeFlags {
  EngineOptions engine;
  std::string layout;
  HttpServerOptions http;
  std::vector<std::string> model_names, cors_origins;
  std::string key_path;
  int requests_per_minute = 0;
  int max_body_mib = 32;
  double drain_seconds = 4;
  bool is_quiet = false;
};

// Every connection is a descriptor; the usual limit of 1,024 is a shell's habit.
void RaiseDescriptorLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// "models/tiny/" gives "tiny".
std::string NameOfModel(const std::string& path) {
  std::filesystem::path clean = std::filesystem::path(path).lexically_normal();
  if (!clean.has_filename()) clean = clean.parent_path();
  const std::string name = clean.filename().string();
  return name.empty() || name == "." ? "hadal" : name;
}

Result<ApiHandlerOptions> MakeHandlerOptions(const ServeFlags& flags) {
  ApiHandlerOptions options;
  options.model_names = flags.model_names;
  options.default_name = NameOfModel(flags.engine.runner.model_path);
  options.version = HADAL_VERSION;
  if (!flags.key_path.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.key_path, kMaxKeyFileBytes));
    ASSIGN_OR_RETURN(options.keys, ApiKeys::Parse(text, flags.key_path));
  }
  options.cors_origins = flags.cors_origins;
  options.requests_per_minute = flags.requests_per_minute;
  if (!flags.is_quiet) {
    options.log_line = [](const std::string& line) {
      fmt::print(stderr, "{}\n", line);  // one call: lines of several threads do not mix
    };
  }
  return options;
}

// The model on its way, on a thread of its own: the port answers /health meanwhile.
// Bytes in a second, the best of a few passes over more than caches hold: some 50 ms.
double MeasureReadLimit(int num_threads) {
  ThreadPool pool(num_threads > 0 ? num_threads : NumUsableCores());
  ReadProbe probe(int64_t{128} << 20, &pool);
  double best = 0;
  for (int pass = 0; pass < 3; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    probe.Pass(&pool);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(probe.bytes()) / took.count());
  }
  return best;
}

class Loader {
 public:
  Loader(const ServeFlags& flags, ApiHandler* handler, HttpServer* server)
      : thread_([this, &flags, handler, server] { Load(flags, handler, server); }) {}
  ~Loader() {
    if (thread_.joinable()) thread_.join();
  }

  bool is_done() const { return is_done_; }
  // REQUIRES: is_done().
  const Status& status() const { return status_; }

 private:
  void Load(const ServeFlags& flags, ApiHandler* handler, HttpServer* server) {
    try {
      EngineOptions options = flags.engine;
      // Steps that are cut to a time must not cost as much as their context is long.
      AttentionForm* form = &options.runner.attention_form;
      if (*form == AttentionForm::kAuto && options.max_step_ms > 0)
        *form = AttentionForm::kAbsorbed;
      Result<std::unique_ptr<Engine>> engine = OpenEngine(options, flags.layout);
      if (engine.ok()) {
        engine_ = std::move(engine).value();
        engine_->SetReadLimit(MeasureReadLimit(flags.engine.runner.num_threads));
        handler->SetEngine(engine_.get());
        fmt::print("hadal: listening on {}\n", server->url());
        std::fflush(stdout);
      } else {
        Fail(engine.status(), server);
      }
    } catch (const std::exception& failure) {  // out of memory
      Fail(Status::Internal(fmt::format("the model could not be loaded: {}", failure.what())),
           server);
    }
    is_done_ = true;
  }

  // Done before the server ends: its end is when somebody asks.
  void Fail(Status status, HttpServer* server) {
    status_ = std::move(status);
    is_done_ = true;
    server->Stop();
  }

  std::unique_ptr<Engine> engine_;
  Status status_;
  std::atomic<bool> is_done_{false};
  std::thread thread_;
};

Status Serve(const ServeFlags& flags) {
  std::signal(SIGPIPE, SIG_IGN);
  RaiseDescriptorLimit();
  RETURN_IF_ERROR(ModelFolderPath(flags.engine.runner.model_path).status());
  ASSIGN_OR_RETURN(ApiHandlerOptions options, MakeHandlerOptions(flags));
  ApiHandler handler(std::move(options));
  HttpServerOptions http = flags.http;
  http.limits.max_body_bytes = int64_t{flags.max_body_mib} << 20;
  ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> server, HttpServer::Listen(http, &handler));
  handler.SetConnectionCount([&server] { return server->num_connections(); });
  const auto patience = std::chrono::milliseconds(static_cast<int64_t>(flags.drain_seconds * 1000));
  server->HandleSignals([&](int count) {
    if (count > 1) _exit(kInterruptedExitCode);
    fmt::print(stderr, "hadal: finishing what is running; a second signal ends at once\n");
    handler.SetDraining();
    server->Drain(patience);
  });
  // Declared behind the server: the engine ends first, so that it tells no connection of news when
  // there is none.
  Loader loader(flags, &handler, server.get());
  server->Run();
  if (!loader.is_done()) std::_Exit(0);  // stopped while loading: nothing is lost
  return loader.status();
}

}  // namespace

void AddServeCommand(CLI::App* app, CommandBody* body) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command = app->add_subcommand(
      "serve",
      "Answer the APIs of OpenAI, DeepSeek and Anthropic over HTTP. Prints its address when the\n"
      "model is ready; SIGTERM and ctrl-C finish what is running first");
  AddModelArgument(command, &flags->engine.runner.model_path);
  command->add_option("--host", flags->http.address, "Address to listen at (0.0.0.0: all)")
      ->capture_default_str();
  command->add_option("--port", flags->http.port, "Port to listen at; 0 takes a free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command
      ->add_option("--model-name", flags->model_names,
                   "Name that requests must give; may be repeated (default: any name does)")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  AddLayoutOption(command, &flags->layout);

  const std::string access = "Access";
  command
      ->add_option("--api-key-file", flags->key_path,
                   "File of keys, one a line: [NAME] KEY, or [NAME] sha256:HEX")
      ->group(access);
  command
      ->add_option("--cors-origin", flags->cors_origins,
                   "Origin whose pages may ask, or *; may be repeated")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(access);
  command
      ->add_option("--rate-limit", flags->requests_per_minute,
                   "Requests a minute of one key, or of one client without keys (0: no limit)")
      ->check(CLI::Range(0, 1'000'000))
      ->group(access);
  command->add_option("--tls-cert", flags->http.tls_certificate, "Certificate chain, PEM")
      ->group(access);
  command->add_option("--tls-key", flags->http.tls_key, "Its key, PEM")->group(access);

  const std::string limits = "Limits";
  command->add_option("--max-connections", flags->http.limits.max_connections, "Open at a time")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str()
      ->group(limits);
  command->add_option("--max-body-mib", flags->max_body_mib, "Size of a request's body")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str()
      ->group(limits);
  command
      ->add_option("--drain-seconds", flags->drain_seconds,
                   "Time that running requests have after SIGTERM")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str()
      ->group(limits);
  command->add_flag("--quiet", flags->is_quiet, "No log line for each request");
  AddRunnerFlags(command, &flags->engine.runner);
  AddEngineFlags(command, &flags->engine);
  AddSpeculationFlags(command, &flags->engine);
  command->callback([flags, body] { *body = [flags] { return Serve(*flags); }; });
}

}  // namespace hadal
