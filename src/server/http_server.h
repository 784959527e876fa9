// Connections: HTTP/1.1 with or without TLS, event streams, clients that leave, limits, shutting
// down in order. http_server.cc and asio.cc are the only files that see the HTTP library.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "server/http_message.h"

namespace hadal {

struct HttpLimits {
  int max_connections = 2048;                        // more are answered with 503
  int64_t max_header_bytes = 64 << 10;               // 431 beyond
  int64_t max_body_bytes = int64_t{32} << 20;        // 413 beyond
  int64_t max_bodies_bytes = int64_t{1} << 30;       // of all requests being read; 503 beyond
  std::chrono::milliseconds header_timeout{15'000};  // for a whole head
  std::chrono::milliseconds body_timeout{120'000};   // for a whole body
  std::chrono::milliseconds idle_timeout{75'000};    // between two requests of a connection
  std::chrono::milliseconds write_timeout{30'000};   // for a write that the client does not take
  std::chrono::milliseconds keep_alive_interval{10'000};  // of comments in a silent event stream
  int num_handler_threads = 2;
};

struct HttpServerOptions {
  std::string address = "127.0.0.1";
  int port = 8080;                       // 0: a free one
  std::string tls_certificate, tls_key;  // PEM files; both or none
  HttpLimits limits;
};

class HttpServer {
 public:
  // Takes the port; clients may connect from now on and wait for Run(). `handler` must outlive the
  // server. kIo names the address and the port, kInvalidArgument the certificate.
  static Result<std::unique_ptr<HttpServer>> Listen(const HttpServerOptions& options,
                                                    HttpHandler* handler);
  ~HttpServer();

  int port() const;
  std::string url() const;  // "http://127.0.0.1:8080"

  // Serves until the server was drained or stopped.
  void Run();

  // Any thread. Requests that are being answered are finished, for at most `patience`, then they
  // are interrupted; Run() returns when there are none. Idle connections are closed.
  void Drain(std::chrono::milliseconds patience);

  // Any thread. Run() returns as soon as it can.
  void Stop();

  // Calls `on_signal` with 1, 2, ... for SIGTERM and SIGINT, on the thread of Run(). REQUIRES:
  // before Run(), once per process.
  void HandleSignals(std::function<void(int)> on_signal);

  int num_connections() const;  // any thread

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hadal
