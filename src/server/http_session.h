// One connection, from the handshake to the last reply. Internal to http_server.cc: templates over
// the kind of stream, all on the server's one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <poll.h>

#include "server/asio_config.h"
#include "server/http_message.h"
#include "server/http_server.h"

namespace hadal {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;
using Millis = std::chrono::milliseconds;

// Errors are values here, as everywhere.
inline constexpr auto kToken = asio::as_tuple(asio::use_awaitable);

// What the sessions share. The server's thread only.
struct ServerState {
  HttpLimits limits;
  HttpHandler* handler = nullptr;
  asio::thread_pool* pool = nullptr;
  int64_t bodies_bytes = 0;     // held by requests that are being read
  bool is_draining = false;     // no connection is kept alive
  bool must_interrupt = false;  // answers that are on their way end now
  uint64_t num_requests = 0, id_seed = 0;
};

// What the server does to a session.
class SessionBase {
 public:
  virtual ~SessionBase() = default;
  virtual bool is_idle() const = 0;  // between two requests
  virtual void Wake() = 0;           // the state has changed
  virtual void Close() = 0;          // every operation ends with an error
};

// Text of an HTTP head in the handlers' form.
HttpRequest HeadOf(const http::request_header<>& head, std::string client, std::string id);

// The id of the next request.
std::string NextRequestId(ServerState* state);

template <class Stream>
class Session : public SessionBase, public std::enable_shared_from_this<Session<Stream>> {
 public:
  Session(Stream stream, std::string client, ServerState* state)
      : stream_(std::move(stream)),
        news_(stream_.get_executor()),
        client_(std::move(client)),
        state_(state) {}

  bool is_idle() const override { return is_idle_; }
  void Wake() override { news_.cancel(); }
  void Close() override {
    beast::error_code ignored;
    tcp().socket().close(ignored);
    news_.cancel();
  }

  asio::awaitable<void> Run() {
    beast::error_code ignored;
    tcp().socket().set_option(asio::ip::tcp::no_delay(true), ignored);
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      tcp().expires_after(state_->limits.header_timeout);
      const auto [error] = co_await stream_.async_handshake(asio::ssl::stream_base::server, kToken);
      if (error) co_return;
    }
    bool goes_on = true;
    while (goes_on) goes_on = co_await ServeOne();
    co_await Linger();
  }

 private:
  using Parser = http::request_parser<http::string_body>;

  static constexpr size_t kFirstReadBytes = 4096;

  beast::tcp_stream& tcp() { return beast::get_lowest_layer(stream_); }

  // One request and its reply. False: the connection ends.
  asio::awaitable<bool> ServeOne() {
    const bool is_there = co_await WaitForRequest();
    if (!is_there) co_return false;
    Parser parser;
    parser.header_limit(static_cast<uint32_t>(state_->limits.max_header_bytes));
    parser.body_limit(static_cast<uint64_t>(state_->limits.max_body_bytes));
    tcp().expires_after(state_->limits.header_timeout);
    const auto [error, count] = co_await http::async_read_header(stream_, buffer_, parser, kToken);
    HttpRequest request = HeadOf(parser.get(), client_, NextRequestId(state_));
    ExchangeEnd end{.request_bytes = static_cast<int64_t>(count)};
    started_ = std::chrono::steady_clock::now();
    if (error == http::error::body_limit)  // the head says that the body is too long
      co_return co_await Refuse(request, 413, BodyLimitText(), &end);
    if (error) co_return co_await RefuseBrokenHead(request, error, &end);
    keeps_alive_ = parser.get().keep_alive() && !state_->is_draining;
    has_chunks_ = parser.get().version() >= 11;
    if (std::optional<HttpReply> refusal = state_->handler->CheckHead(request)) {
      if (!parser.is_done()) keeps_alive_ = false;  // the body is not read
      co_return co_await SendAtOnce(request, std::move(*refusal), nullptr, &end);
    }
    if (http::token_list(parser.get()[http::field::expect]).exists("100-continue")) {
      const bool was_sent = co_await WriteRaw("HTTP/1.1 100 Continue\r\n\r\n");
      if (!was_sent) co_return false;
    }
    const int refused_with = co_await ReadBody(&parser, &end);
    if (refused_with < 0) co_return false;
    if (refused_with == 413) co_return co_await Refuse(request, 413, BodyLimitText(), &end);
    if (refused_with == 503)
      co_return co_await Refuse(request, 503, "too many requests are being read, try again", &end);
    if (refused_with > 0)
      co_return co_await Refuse(request, refused_with, "the body could not be read", &end);
    co_return co_await Answer(request, std::move(parser.get().body()), &end);
  }

  // Until the first bytes of a request are in `buffer_`, or the time of an idle connection is over.
  // They are read through the stream: the socket can be silent while the layer of TLS holds bytes
  // that came with the end of the handshake.
  asio::awaitable<bool> WaitForRequest() {
    // While the server drains, a new connection may still ask how it is.
    if (state_->is_draining && num_served_ > 0) co_return false;
    if (buffer_.size() > 0) co_return true;
    is_idle_ = true;
    tcp().expires_after(state_->is_draining ? Millis(1000)
                        : num_served_ == 0  ? state_->limits.header_timeout
                                            : state_->limits.idle_timeout);
    const auto [error, count] =
        co_await stream_.async_read_some(buffer_.prepare(kFirstReadBytes), kToken);
    buffer_.commit(count);
    is_idle_ = false;
    co_return !error;
  }

  // 0: read whole; -1: the connection is gone; else the status of the refusal.
  asio::awaitable<int> ReadBody(Parser* parser, ExchangeEnd* end) {
    tcp().expires_after(state_->limits.body_timeout);
    int64_t charged = 0;
    int status = 0;
    while (!parser->is_done() && status == 0) {
      const auto [error, count] = co_await http::async_read_some(stream_, buffer_, *parser, kToken);
      end->request_bytes += static_cast<int64_t>(count);
      state_->bodies_bytes += static_cast<int64_t>(count);
      charged += static_cast<int64_t>(count);
      if (error == http::error::body_limit) {
        status = 413;
      } else if (error == beast::error::timeout) {
        status = 408;
      } else if (error.category() == make_error_code(http::error::end_of_stream).category()) {
        status =
            error == http::error::end_of_stream || error == http::error::partial_message ? -1 : 400;
      } else if (error) {
        status = -1;
      } else if (state_->bodies_bytes > state_->limits.max_bodies_bytes) {
        status = 503;
      }
    }
    state_->bodies_bytes -= charged;
    co_return status;
  }

  asio::awaitable<bool> Answer(const HttpRequest& head, std::string body, ExchangeEnd* end) {
    HttpRequest request = head;
    request.body = std::move(body);
    tcp().expires_never();
    HttpHandler* const handler = state_->handler;
    auto handle =
        [handler,
         whole = std::move(request)]() mutable -> asio::awaitable<std::unique_ptr<PendingReply>> {
      co_return handler->Handle(std::move(whole));
    };
    auto [exception, reply] = co_await asio::co_spawn(*state_->pool, std::move(handle), kToken);
    if (exception || !reply) co_return co_await Refuse(head, 500, "out of memory", end);
    auto weak = this->weak_from_this();
    reply->Start([weak] {
      if (auto self = weak.lock())
        asio::post(self->stream_.get_executor(), [self] { self->Wake(); });
    });
    const bool was_sent = co_await SendParts(head, reply.get(), end);
    if (!was_sent) {
      reply->Abandon();
      end->was_abandoned = true;
    }
    Finish(head, reply.get(), end);
    co_return was_sent&& keeps_alive_;
  }

  // All parts of a reply as they come. False: the client is gone.
  asio::awaitable<bool> SendParts(const HttpRequest& request, PendingReply* reply,
                                  ExchangeEnd* end) {
    ReplyPart part;
    bool was_interrupted = false, has_head = false;
    auto last_write = std::chrono::steady_clock::now();
    while (true) {
      if (state_->must_interrupt && !was_interrupted) {
        was_interrupted = true;
        reply->Interrupt();
      }
      if (!reply->Read(&part)) {
        if (IsPeerGone()) co_return false;
        const auto silence = std::chrono::steady_clock::now() - last_write;
        if (!has_head || silence < state_->limits.keep_alive_interval ||
            reply->keep_alive().empty()) {
          co_await WaitForNews();
          continue;
        }
        part = {.head = {}, .body = std::string(reply->keep_alive()), .is_last = false};
      }
      if (part.head) {
        state_->handler->AddHeaders(request, &*part.head);
        end->status = part.head->status;
        has_head = true;
      }
      const bool was_sent = co_await SendPart(&part, end);
      if (!was_sent) co_return false;
      if (part.is_last) co_return true;
      last_write = std::chrono::steady_clock::now();
    }
  }

  asio::awaitable<bool> SendPart(ReplyPart* part, ExchangeEnd* end) {
    if (part->head && part->is_last) {
      co_return co_await SendWhole(std::move(*part->head), end);
    }
    std::string body = std::move(part->body);
    if (part->head) {
      body = std::move(part->head->body);
      const bool was_sent = co_await SendHead(*part->head);
      if (!was_sent) co_return false;
    }
    end->reply_bytes += static_cast<int64_t>(body.size());
    if (!body.empty()) {
      const bool was_sent = co_await SendChunk(body);
      if (!was_sent) co_return false;
    }
    if (part->is_last && has_chunks_) co_return co_await WriteRaw("0\r\n\r\n");
    co_return true;
  }

  asio::awaitable<bool> SendWhole(HttpReply reply, ExchangeEnd* end) {
    http::response<http::string_body> response = {static_cast<http::status>(reply.status), 11};
    SetHeaders(reply, &response);
    response.body() = std::move(reply.body);
    response.prepare_payload();
    response.keep_alive(keeps_alive_);
    end->reply_bytes = static_cast<int64_t>(response.body().size());
    tcp().expires_after(state_->limits.write_timeout);
    const auto [error, count] = co_await http::async_write(stream_, response, kToken);
    co_return !error;
  }

  // The head of a reply whose length nobody knows yet.
  asio::awaitable<bool> SendHead(const HttpReply& reply) {
    http::response<http::empty_body> response = {static_cast<http::status>(reply.status), 11};
    SetHeaders(reply, &response);
    if (!has_chunks_) keeps_alive_ = false;  // HTTP/1.0: the end of the connection ends the reply
    response.chunked(has_chunks_);
    response.keep_alive(keeps_alive_);
    http::response_serializer<http::empty_body> serializer(response);
    tcp().expires_after(state_->limits.write_timeout);
    const auto [error, count] = co_await http::async_write_header(stream_, serializer, kToken);
    co_return !error;
  }

  asio::awaitable<bool> SendChunk(const std::string& body) {
    if (!has_chunks_) co_return co_await WriteRaw(body);
    tcp().expires_after(state_->limits.write_timeout);
    const auto chunk = http::make_chunk(asio::const_buffer(body.data(), body.size()));
    const auto [error, count] = co_await asio::async_write(stream_, chunk, kToken);
    co_return !error;
  }

  asio::awaitable<bool> WriteRaw(std::string_view bytes) {
    tcp().expires_after(state_->limits.write_timeout);
    const auto [error, count] =
        co_await asio::async_write(stream_, asio::const_buffer(bytes.data(), bytes.size()), kToken);
    co_return !error;
  }

  template <class Response>
  static void SetHeaders(const HttpReply& reply, Response* response) {
    if (!reply.content_type.empty()) response->set(http::field::content_type, reply.content_type);
    for (const HttpHeader& header : reply.headers) response->insert(header.name, header.value);
  }

  // Until Wake(), but never long: nobody tells when a client has left.
  asio::awaitable<void> WaitForNews() {
    tcp().expires_never();
    news_.expires_after(Millis(100));
    co_await news_.async_wait(kToken);
  }

  // The client has closed its side. Asked of the system, because bytes that it sent before (the
  // next request, or a close of TLS) would hide the end from a read.
  bool IsPeerGone() {
    if (!tcp().socket().is_open()) return true;
    pollfd entry = {tcp().socket().native_handle(), POLLRDHUP, 0};
    return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
  }

  asio::awaitable<bool> RefuseBrokenHead(const HttpRequest& request, beast::error_code error,
                                         ExchangeEnd* end) {
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      co_return co_await Refuse(request, 431, "the head of the request is too long", end);
    }
    if (error == beast::error::timeout)
      co_return false;  // nothing that deserves an answer was said
    if (error == http::error::end_of_stream || error == http::error::partial_message)
      co_return false;
    if (error.category() != make_error_code(http::error::end_of_stream).category()) co_return false;
    co_return co_await Refuse(request, 400, "this is not an HTTP request", end);
  }

  // A reply of the server's own; the connection ends.
  asio::awaitable<bool> Refuse(const HttpRequest& request, int status, std::string_view problem,
                               ExchangeEnd* end) {
    keeps_alive_ = false;
    HttpReply reply = state_->handler->Refusal(request, status, problem);
    co_return co_await SendAtOnce(request, std::move(reply), nullptr, end);
  }

  asio::awaitable<bool> SendAtOnce(const HttpRequest& request, HttpReply reply,
                                   const PendingReply* pending, ExchangeEnd* end) {
    state_->handler->AddHeaders(request, &reply);
    end->status = reply.status;
    const bool was_sent = co_await SendWhole(std::move(reply), end);
    end->was_abandoned = !was_sent;
    Finish(request, pending, end);
    co_return was_sent&& keeps_alive_;
  }

  void Finish(const HttpRequest& request, const PendingReply* reply, ExchangeEnd* end) {
    ++num_served_;
    const auto duration = std::chrono::steady_clock::now() - started_;
    end->duration_us = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
    state_->handler->OnEnd(request, reply, *end);
  }

  std::string BodyLimitText() const {
    return "the body is longer than " + std::to_string(state_->limits.max_body_bytes) + " bytes";
  }

  // The end in order. What the client still sends is read for a moment and dropped, because a
  // system that closes with unread bytes also throws away the reply that it has not yet sent.
  asio::awaitable<void> Linger() {
    beast::error_code ignored;
    if (!tcp().socket().is_open()) co_return;
    tcp().expires_after(Millis(1000));
    if constexpr (std::is_same_v<Stream, TlsStream>) co_await stream_.async_shutdown(kToken);
    tcp().socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    std::string dropped(16 << 10, '\0');
    for (int i = 0; i < 256; ++i) {
      const auto [error, count] = co_await tcp().async_read_some(asio::buffer(dropped), kToken);
      if (error) break;
    }
    tcp().socket().close(ignored);
  }

  Stream stream_;
  beast::flat_buffer buffer_;
  asio::steady_timer news_;
  const std::string client_;
  ServerState* const state_;
  std::chrono::steady_clock::time_point started_;
  bool is_idle_ = false;
  bool keeps_alive_ = false;  // of the request at hand
  bool has_chunks_ = true;
  int num_served_ = 0;
};

}  // namespace hadal
