#include "server/http_server.h"

#include <csignal>
#include <random>
#include <unordered_set>

#include <boost/asio/signal_set.hpp>
#include <boost/asio/ssl/context.hpp>
#include <fmt/format.h>

#include "base/hash.h"
#include "base/log.h"
#include "server/asio_config.h"
#include "server/http_session.h"

namespace hadal {
namespace {

using Tcp = asio::ip::tcp;

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

Result<Tcp::endpoint> EndpointOf(const HttpServerOptions& options, asio::io_context* io) {
  beast::error_code error;
  const auto port = static_cast<asio::ip::port_type>(options.port);
  const asio::ip::address address = asio::ip::make_address(options.address, error);
  if (!error) return Tcp::endpoint(address, port);
  Tcp::resolver resolver(*io);
  const auto found = resolver.resolve(options.address, std::to_string(options.port), error);
  if (!error && !found.empty()) return found.begin()->endpoint();
  return Status::Io(fmt::format("{}: expected an address of this machine, found none of that name",
                                options.address));
}

Result<std::unique_ptr<asio::ssl::context>> MakeTls(const HttpServerOptions& options) {
  if (options.tls_certificate.empty() && options.tls_key.empty())
    return std::unique_ptr<asio::ssl::context>();
  if (options.tls_certificate.empty() || options.tls_key.empty())
    return Status::InvalidArgument("TLS: expected a certificate and a key, found only one of them");
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  beast::error_code error;
  context->set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, error);
  context->use_certificate_chain_file(options.tls_certificate, error);
  if (error) {
    return Status::InvalidArgument(fmt::format("{}: expected a certificate chain in PEM, found: {}",
                                               options.tls_certificate, error.message()));
  }
  context->use_private_key_file(options.tls_key, asio::ssl::context::pem, error);
  if (error) {
    return Status::InvalidArgument(fmt::format(
        "{}: expected the certificate's key in PEM, found: {}", options.tls_key, error.message()));
  }
  return context;
}

}  // namespace

HttpRequest HeadOf(const http::request_header<>& head, std::string client, std::string id) {
  HttpRequest request;
  request.method = View(head.method_string());
  const std::string_view target = View(head.target());
  const size_t question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string_view::npos) request.query = target.substr(question + 1);
  for (const auto& field : head) {
    HttpHeader& header = request.headers.emplace_back();
    header.name = View(field.name_string());
    for (char& c : header.name)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    header.value = View(field.value());
  }
  request.client = std::move(client);
  request.id = std::move(id);
  return request;
}

std::string NextRequestId(ServerState* state) {
  const Hash128 mixed = Extend({state->id_seed, state->id_seed}, state->num_requests++);
  return fmt::format("req_{:016x}", mixed.lo);
}

class HttpServer::Impl {
 public:
  Impl(const HttpServerOptions& options, HttpHandler* handler)
      : pool_(static_cast<size_t>(options.limits.num_handler_threads)) {
    state_.limits = options.limits;
    state_.handler = handler;
    state_.pool = &pool_;
    state_.id_seed = (static_cast<uint64_t>(std::random_device()()) << 32) | std::random_device()();
  }

  ~Impl() {
    pool_.stop();
    pool_.join();
  }

  Status Open(const HttpServerOptions& options) {
    ASSIGN_OR_RETURN(tls_, MakeTls(options));
    ASSIGN_OR_RETURN(const Tcp::endpoint endpoint, EndpointOf(options, &io_));
    beast::error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(1024, error);
    if (error) {
      return Status::Io(fmt::format("port {} of {}: expected it to be free, found: {}",
                                    options.port, options.address, error.message()));
    }
    return Status::Ok();
  }

  int port() const {
    beast::error_code ignored;
    return acceptor_.local_endpoint(ignored).port();
  }

  std::string url() const {
    beast::error_code ignored;
    const asio::ip::address address = acceptor_.local_endpoint(ignored).address();
    const std::string host =
        address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
    return fmt::format("{}://{}:{}", tls_ ? "https" : "http", host, port());
  }

  void Run() {
    asio::co_spawn(io_, Accept(), asio::detached);
    io_.run();
  }

  void Drain(Millis patience) {
    asio::post(io_, [this, patience] {
      if (state_.is_draining) return;
      state_.is_draining = true;
      for (SessionBase* session : std::vector(sessions_.begin(), sessions_.end()))
        if (session->is_idle()) session->Close();
      asio::co_spawn(io_, EndDrain(patience), asio::detached);
      CloseWhenDone();
    });
  }

  void Stop() { Drain(Millis(0)); }

  void HandleSignals(std::function<void(int)> on_signal) {
    signals_.emplace(io_, SIGTERM, SIGINT);
    asio::co_spawn(io_, WatchSignals(std::move(on_signal)), asio::detached);
  }

  int num_connections() const { return num_connections_; }

 private:
  asio::awaitable<void> Accept() {
    while (acceptor_.is_open()) {
      auto [error, socket] = co_await acceptor_.async_accept(kToken);
      if (error == asio::error::operation_aborted) break;
      if (error) {  // out of descriptors: some connection will end
        asio::steady_timer pause(io_, Millis(50));
        co_await pause.async_wait(kToken);
        continue;
      }
      if (num_connections_ >= state_.limits.max_connections) {
        TurnAway(&socket);
        continue;
      }
      const Tcp::endpoint peer = socket.remote_endpoint(error);
      std::string client = error ? "unknown" : peer.address().to_string();
      if (tls_) {
        Begin(std::make_shared<Session<TlsStream>>(TlsStream(std::move(socket), *tls_),
                                                   std::move(client), &state_));
      } else {
        Begin(std::make_shared<Session<PlainStream>>(PlainStream(std::move(socket)),
                                                     std::move(client), &state_));
      }
    }
  }

  template <class AnySession>
  void Begin(std::shared_ptr<AnySession> session) {
    ++num_connections_;
    sessions_.insert(session.get());
    asio::co_spawn(io_, session->Run(), [this, session](const std::exception_ptr& exception) {
      if (exception) Log(LogLevel::kError, "a connection ended by an exception: out of memory?");
      --num_connections_;
      sessions_.erase(session.get());
      CloseWhenDone();
    });
  }

  void TurnAway(Tcp::socket* socket) {
    static constexpr std::string_view kFull =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
        "Connection: close\r\nContent-Length: 91\r\n\r\n"
        R"({"error":{"message":"too many connections","type":"server_error","param":null,"code":null}})";
    beast::error_code ignored;
    socket->non_blocking(true, ignored);
    if (!tls_) socket->write_some(asio::const_buffer(kFull.data(), kFull.size()), ignored);
    socket->shutdown(Tcp::socket::shutdown_both, ignored);
  }

  asio::awaitable<void> EndDrain(Millis patience) {
    if (sessions_.empty()) co_return;  // CloseWhenDone was there first
    patience_.expires_after(patience);
    auto [error] = co_await patience_.async_wait(kToken);
    if (error) co_return;
    state_.must_interrupt = true;
    for (SessionBase* session : sessions_) session->Wake();
    patience_.expires_after(Millis(500));
    std::tie(error) = co_await patience_.async_wait(kToken);
    if (error) co_return;
    for (SessionBase* session : std::vector(sessions_.begin(), sessions_.end())) session->Close();
  }

  void CloseWhenDone() {
    if (!state_.is_draining || !sessions_.empty()) return;
    beast::error_code ignored;
    acceptor_.close(ignored);
    patience_.cancel();
    if (signals_) signals_->cancel(ignored);
  }

  asio::awaitable<void> WatchSignals(std::function<void(int)> on_signal) {
    for (int count = 1;; ++count) {
      const auto [error, number] = co_await signals_->async_wait(kToken);
      if (error) break;
      on_signal(count);
    }
  }

  asio::io_context io_{1};
  asio::thread_pool pool_;
  std::unique_ptr<asio::ssl::context> tls_;
  Tcp::acceptor acceptor_{io_};
  asio::steady_timer patience_{io_};
  std::optional<asio::signal_set> signals_;
  ServerState state_;
  std::unordered_set<SessionBase*> sessions_;
  std::atomic<int> num_connections_{0};
};

Result<std::unique_ptr<HttpServer>> HttpServer::Listen(const HttpServerOptions& options,
                                                       HttpHandler* handler) {
  auto impl = std::make_unique<Impl>(options, handler);
  RETURN_IF_ERROR(impl->Open(options));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

int HttpServer::port() const { return impl_->port(); }
std::string HttpServer::url() const { return impl_->url(); }
void HttpServer::Run() { impl_->Run(); }
void HttpServer::Drain(Millis patience) { impl_->Drain(patience); }
void HttpServer::Stop() { impl_->Stop(); }
void HttpServer::HandleSignals(std::function<void(int)> on_signal) {
  impl_->HandleSignals(std::move(on_signal));
}
int HttpServer::num_connections() const { return impl_->num_connections(); }

}  // namespace hadal
