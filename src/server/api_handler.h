// What is behind the connections: who may ask, what is asked, what the engine is told, what is
// counted and logged. docs/server.md has the table of routes.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "server/access.h"
#include "server/api_call.h"
#include "server/http_message.h"
#include "server/routes.h"
#include "server/server_metrics.h"

namespace hadal {

struct ApiHandlerOptions {
  std::vector<std::string> model_names = {};  // that requests must name; empty: any name does
  std::string default_name = "hadal";         // reported when model_names is empty
  std::string version = {};
  ApiKeys keys = {};  // none: everybody may ask
  std::vector<std::string> cors_origins = {};
  int requests_per_minute = 0;  // of a key, or of a client's address without keys; 0: no limit
  // One JSON object for each request, several threads at a time; may be empty.
  std::function<void(const std::string&)> log_line = {};
};

class ApiHandler : public HttpHandler {
 public:
  explicit ApiHandler(ApiHandlerOptions options);

  // From now on requests are answered. `engine` must outlive all replies. Once.
  void SetEngine(Engine* engine);
  // From now on requests that need the engine are turned away.
  void SetDraining() { is_draining_ = true; }
  // How many connections are open, for /metrics. Before the server runs.
  void SetConnectionCount(std::function<int()> count) { num_connections_ = std::move(count); }

  std::optional<HttpReply> CheckHead(const HttpRequest& request) override;
  std::unique_ptr<PendingReply> Handle(HttpRequest request) override;
  HttpReply Refusal(const HttpRequest& request, int status, std::string_view problem) override;
  void AddHeaders(const HttpRequest& request, HttpReply* reply) override;
  void OnEnd(const HttpRequest& request, const PendingReply* reply,
             const ExchangeEnd& end) override;

 private:
  std::optional<HttpReply> CheckAccess(const HttpRequest& request, const Route& route);
  std::optional<HttpReply> CheckState(const Route& route) const;
  HttpReply Answer(const Route& route, const HttpRequest& request) const;
  HttpReply Health() const;
  HttpReply Models() const;
  HttpReply Model(std::string_view name) const;
  HttpReply MetricsText() const;
  static HttpReply Page(std::string_view path);
  Json ModelJson(std::string_view name) const;
  Result<std::unique_ptr<PendingReply>> Generate(const Route& route, const HttpRequest& request);

  const ApiHandlerOptions options_;
  const CorsPolicy cors_;
  RateLimiter limiter_;
  ServerMetrics metrics_;
  std::function<int()> num_connections_;
  ApiModel model_;                        // never changes once engine_ is set
  std::string fingerprint_;               // likewise
  std::atomic<Engine*> engine_{nullptr};  // null: loading
  std::atomic<bool> is_draining_{false};
};

}  // namespace hadal
