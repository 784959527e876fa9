// A server of a test, on a port of its own, and a client that sends what it is told to the byte.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "server/api_handler.h"
#include "server/http_server.h"

namespace hadal {

class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    HADAL_CHECK(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  ~Client() { Close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // False when the server has closed.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  bool Post(std::string_view path, std::string_view body, std::string_view headers = "") {
    return Send(std::string("POST ") + std::string(path) +
                " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
                std::string(headers) + "\r\n" + std::string(body));
  }
  bool Get(std::string_view path, std::string_view headers = "") {
    return Send(std::string("GET ") + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" +
                std::string(headers) + "\r\n");
  }

  // Reads until `text` has come, the server closes, or ten seconds are over. All that came so far.
  const std::string& ReadUntil(std::string_view text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (received_.find(text) == std::string::npos && !is_closed_ &&
           std::chrono::steady_clock::now() < end) {
      pollfd entry = {socket_, POLLIN, 0};
      if (::poll(&entry, 1, 100) <= 0) continue;
      char buffer[4096];
      const ssize_t count = ::recv(socket_, buffer, sizeof buffer, 0);
      is_closed_ = count <= 0;
      if (count > 0) received_.append(buffer, static_cast<size_t>(count));
    }
    return received_;
  }
  const std::string& ReadAll() { return ReadUntil("\x01no such text"); }

  // The status of the first reply.
  int Status() {
    ReadUntil("\r\n\r\n");
    return received_.size() < 12 ? 0 : std::stoi(received_.substr(9, 3));
  }
  bool is_closed() const { return is_closed_; }
  void Forget() { received_.clear(); }

  void Close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }

 private:
  int socket_;
  std::string received_;
  bool is_closed_ = false;
};

class Loopback {
 public:
  explicit Loopback(Engine* engine, HttpLimits limits = {}, ApiHandlerOptions options = {})
      : handler(std::move(options)) {
    Result<std::unique_ptr<HttpServer>> listening = HttpServer::Listen(
        {.port = 0, .tls_certificate = "", .tls_key = "", .limits = limits}, &handler);
    HADAL_CHECK(listening.ok());
    server = std::move(listening).value();
    if (engine != nullptr) handler.SetEngine(engine);
    thread_ = std::thread([this] { server->Run(); });
  }
  ~Loopback() { Stop(); }

  // Until no connection is left.
  void Stop() {
    if (!thread_.joinable()) return;
    server->Stop();
    thread_.join();
  }
  void Join() { thread_.join(); }
  int port() const { return server->port(); }

  ApiHandler handler;
  std::unique_ptr<HttpServer> server;

 private:
  std::thread thread_;
};

}  // namespace hadal
