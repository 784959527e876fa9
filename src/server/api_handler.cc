#include "server/api_handler.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/quote.h"
#include "server/generation_reply.h"
#include "server/web/web_files.h"
#include "text/python_json.h"

namespace hadal {
namespace {

// The page loads nothing from elsewhere and is put into no other page.
constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src "
    "'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

std::string TimeText() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     since.count() % 1000);
}

// Short, and another one for another program or model.
std::string Fingerprint(std::string_view version, const Engine& engine) {
  Hash128 hash;
  for (const char c : version) hash = Extend(hash, static_cast<uint8_t>(c));
  for (const char c : engine.info().model_type) hash = Extend(hash, static_cast<uint8_t>(c));
  hash = Extend(hash, static_cast<uint64_t>(engine.info().vocab_size));
  return fmt::format("fp_{:010x}", hash.lo & 0xffffffffffULL);
}

HttpReply JsonReply(const Json& body) { return {.body = DumpJson(body)}; }

std::unique_ptr<PendingReply> Ready(HttpReply reply) {
  return std::make_unique<ReadyReply>(std::move(reply));
}

// The body as JSON, or an error that begins with "body".
Result<Json> BodyJson(const HttpRequest& request) {
  if (request.body.empty())
    return Status::InvalidArgument("body: expected a JSON object, found nothing");
  ASSIGN_OR_RETURN(Json body, ParseJsonKeepingIntegers(request.body, "body"));
  if (!body.is_object())
    return Status::InvalidArgument("body: expected a JSON object, found another value");
  return body;
}

}  // namespace

ApiHandler::ApiHandler(ApiHandlerOptions options)
    : options_(std::move(options)),
      cors_(options_.cors_origins),
      limiter_(options_.requests_per_minute) {}

void ApiHandler::SetEngine(Engine* engine) {
  model_.checks_names = !options_.model_names.empty();
  model_.names =
      model_.checks_names ? options_.model_names : std::vector<std::string>{options_.default_name};
  model_.created_s = std::time(nullptr);
  model_.layout = engine->layout().layout;
  model_.is_chat_model = engine->is_chat_model();
  model_.default_sampling = engine->default_sampling();
  model_.default_speculation = engine->default_speculation();
  model_.tokenizer = engine->tokenizer();
  const ModelInfo& info = engine->info();
  model_.max_context_tokens = info.max_context_tokens;
  model_.num_tokens = model_.tokenizer == nullptr
                          ? info.vocab_size
                          : std::min(model_.tokenizer->vocab_size(), info.vocab_size);
  fingerprint_ = Fingerprint(options_.version, *engine);
  engine_ = engine;
}

std::optional<HttpReply> ApiHandler::CheckHead(const HttpRequest& request) {
  if (CorsPolicy::IsPreflight(request))
    return HttpReply{.status = 204, .content_type = "", .headers = {}, .body = {}};
  std::string_view allowed;
  const Route* route = FindRoute(request.method, request.path, &allowed);
  if (route == nullptr && !allowed.empty()) {
    HttpReply reply = Refusal(
        request, 405,
        fmt::format("expected the method {}, found {}", allowed, Quoted(request.method, 16)));
    reply.headers.push_back({"Allow", std::string(allowed)});
    return reply;
  }
  const bool is_there = route != nullptr &&
                        (route->kind != Route::Kind::kPage || FindWebFile(request.path) != nullptr);
  if (!is_there)
    return Refusal(request, 404, fmt::format("there is nothing at {}", Quoted(request.path, 80)));
  if (std::optional<HttpReply> refusal = CheckAccess(request, *route)) return refusal;
  return CheckState(*route);
}

std::optional<HttpReply> ApiHandler::CheckAccess(const HttpRequest& request, const Route& route) {
  if (!route.needs_key) return std::nullopt;
  std::string who = request.client;
  if (!options_.keys.empty()) {
    const std::optional<std::string> name = options_.keys.Find(request);
    if (!name) return ErrorReply(route.dialect, 401, "the API key is missing or not known");
    who = *name;
  }
  if (!route.needs_engine) return std::nullopt;
  const int seconds = limiter_.SecondsToWait(who, std::chrono::steady_clock::now());
  if (seconds == 0) return std::nullopt;
  HttpReply reply =
      ErrorReply(route.dialect, 429,
                 fmt::format("more than {} requests in a minute", options_.requests_per_minute));
  reply.headers = {{"Retry-After", fmt::format("{}", seconds)}};
  return reply;
}

std::optional<HttpReply> ApiHandler::CheckState(const Route& route) const {
  if (!route.needs_engine) return std::nullopt;
  if (is_draining_) return ErrorReply(route.dialect, 503, "the server is shutting down");
  if (engine_ == nullptr) return ErrorReply(route.dialect, 503, "the model is being loaded");
  return std::nullopt;
}

std::unique_ptr<PendingReply> ApiHandler::Handle(HttpRequest request) {
  std::string_view allowed;
  const Route* route = FindRoute(request.method, request.path, &allowed);
  HADAL_CHECK(route != nullptr);  // CheckHead let it pass
  if (route->kind != Route::Kind::kGenerate) return Ready(Answer(*route, request));
  Result<std::unique_ptr<PendingReply>> reply = Generate(*route, request);
  if (reply.ok()) return std::move(reply).value();
  HttpReply error = ErrorReply(route->dialect, reply.status());
  if (reply.status().code() == StatusCode::kResourceExhausted) {
    const Engine* const engine = engine_;
    error.headers = {{"Retry-After", fmt::format("{}", engine->RetryAfterSeconds())}};
  }
  return Ready(std::move(error));
}

HttpReply ApiHandler::Answer(const Route& route, const HttpRequest& request) const {
  using Kind = Route::Kind;
  switch (route.kind) {
    case Kind::kHealth:
      return Health();
    case Kind::kVersion:
      return JsonReply({{"version", options_.version}});
    case Kind::kMetrics:
      return MetricsText();
    case Kind::kModels:
      return Models();
    case Kind::kModel:
      return Model(PlainPath(request.path).substr(route.path.size()));
    case Kind::kPage:
      return Page(request.path);
    case Kind::kCompute: {
      const Result<Json> body = BodyJson(request);
      if (!body.ok()) return ErrorReply(route.dialect, body.status());
      const Result<Json> answer = route.compute(body.value(), model_);
      return answer.ok() ? JsonReply(answer.value()) : ErrorReply(route.dialect, answer.status());
    }
    case Kind::kGenerate:
      break;
  }
  return ErrorReply(route.dialect, 500, "a route without an answer");
}

Result<std::unique_ptr<PendingReply>> ApiHandler::Generate(const Route& route,
                                                           const HttpRequest& request) {
  Engine* const engine = engine_;
  ASSIGN_OR_RETURN(const Json body, BodyJson(request));
  ASSIGN_OR_RETURN(const ApiCall call, route.parse(body, model_));
  ReplySetting setting{.info = {.id = request.id,
                                .model = call.model,
                                .created_s = static_cast<int64_t>(std::time(nullptr)),
                                .fingerprint = fingerprint_},
                       .tokenizer = model_.tokenizer,
                       .num_choices = 0,
                       .num_prompts = static_cast<int>(call.requests.size()),
                       .wants_usage = call.wants_usage,
                       .wants_logprobs = call.wants_logprobs,
                       .echoes = call.echoes,
                       .repeated = call.repeated};
  std::vector<std::shared_ptr<ResponseStream>> streams;
  for (const GenerationRequest& one : call.requests) {
    Result<std::shared_ptr<ResponseStream>> stream = engine->Submit(one);
    if (!stream.ok()) {
      for (const auto& earlier : streams) engine->Cancel(*earlier);
      return stream.status();
    }
    setting.num_choices += one.num_choices;
    streams.push_back(std::move(stream).value());
  }
  std::unique_ptr<ReplyWriter> writer =
      call.is_streamed ? route.streamed(setting) : route.plain(setting);
  return std::unique_ptr<PendingReply>(
      std::make_unique<GenerationReply>(engine, std::move(streams), std::move(writer), call));
}

HttpReply ApiHandler::Health() const {
  const char* state = is_draining_ ? "draining" : engine_ == nullptr ? "loading" : "ready";
  HttpReply reply = JsonReply({{"status", state}});
  if (std::string_view(state) != "ready") reply.status = 503;
  return reply;
}

Json ApiHandler::ModelJson(std::string_view name) const {
  return {{"id", name},
          {"object", "model"},
          {"created", model_.created_s},
          {"owned_by", "hadal"},
          {"max_model_len", model_.max_context_tokens}};
}

HttpReply ApiHandler::Models() const {
  Json list = Json::array();
  for (const std::string& name : model_.names) list.push_back(ModelJson(name));
  return JsonReply({{"object", "list"}, {"data", std::move(list)}});
}

HttpReply ApiHandler::Model(std::string_view name) const {
  if (std::ranges::find(model_.names, name) != model_.names.end())
    return JsonReply(ModelJson(name));
  return ErrorReply(
      ApiDialect::kOpenAi, 404,
      fmt::format("model: expected one that is listed at /v1/models, found {}", Quoted(name, 80)));
}

HttpReply ApiHandler::MetricsText() const {
  const Engine* const engine = engine_;
  MetricsSnapshot snapshot;
  if (engine != nullptr) snapshot = engine->metrics();
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = metrics_.Text(engine == nullptr ? nullptr : &snapshot,
                                num_connections_ ? num_connections_() : 0, is_draining_)};
}

HttpReply ApiHandler::Page(std::string_view path) {
  const WebFile* const file = FindWebFile(path);
  HADAL_CHECK(file != nullptr);  // CheckHead let it pass
  return {.content_type = std::string(ContentTypeOf(file->path)),
          .headers = {{"Content-Security-Policy", kPagePolicy},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-cache"}},
          .body = std::string(file->body)};
}

HttpReply ApiHandler::Refusal(const HttpRequest& request, int status, std::string_view problem) {
  return ErrorReply(DialectOf(request.path), status, problem);
}

void ApiHandler::AddHeaders(const HttpRequest& request, HttpReply* reply) {
  const bool is_anthropic = DialectOf(request.path) == ApiDialect::kAnthropic;
  reply->headers.push_back({is_anthropic ? "request-id" : "x-request-id", request.id});
  reply->headers.push_back({"X-Content-Type-Options", "nosniff"});
  cors_.AddHeaders(request, &reply->headers);
}

void ApiHandler::OnEnd(const HttpRequest& request, const PendingReply* reply,
                       const ExchangeEnd& end) {
  std::string_view allowed;
  const Route* route = FindRoute(request.method, request.path, &allowed);
  metrics_.CountRequest(route == nullptr ? "none" : route->name, end);
  if (!options_.log_line) return;
  Json line = {{"time", TimeText()},
               {"request_id", request.id},
               {"client", request.client},
               {"method", request.method},
               {"path", request.path},
               {"status", end.status},
               {"duration_ms", static_cast<double>(end.duration_us) / 1000},
               {"request_bytes", end.request_bytes},
               {"reply_bytes", end.reply_bytes}};
  if (end.was_abandoned) line["abandoned"] = true;
  if (const std::string_view theirs = request.Header("x-request-id"); !theirs.empty())
    line["client_request_id"] = theirs.substr(0, 128);
  if (!options_.keys.empty()) {
    if (const auto name = options_.keys.Find(request)) line["key"] = *name;
  }
  if (reply != nullptr) reply->AddToLog(&line);
  options_.log_line(DumpJson(line));
}

}  // namespace hadal
