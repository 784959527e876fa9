// HTTP as the handlers see it: plain data, and an answer that is pulled piece by piece. Nothing
// here knows the HTTP library.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace hadal {

struct HttpHeader {
  std::string name, value;
};

struct HttpRequest {
  std::string method;               // "GET", "POST", ...
  std::string path;                 // without the query, as it was sent
  std::string query;                // behind the question mark
  std::vector<HttpHeader> headers;  // names in lower case, in the order they came
  std::string body;
  std::string client;  // address of the peer, without its port
  std::string id;      // made by the server: unique in this process

  // The value of the first header of that (lower case) name; empty without one.
  std::string_view Header(std::string_view name) const {
    for (const HttpHeader& header : headers)
      if (header.name == name) return header.value;
    return {};
  }
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<HttpHeader> headers = {};
  std::string body = {};
};

// What a connection writes next.
struct ReplyPart {
  std::optional<HttpReply> head;  // of the first part only; its body is the first piece
  std::string body;               // of later parts
  bool is_last = false;
};

// An answer on its way. One connection owns it and is the only one to call it, but for the waker,
// which any thread may call.
class PendingReply {
 public:
  virtual ~PendingReply() = default;

  // `wake` is to be called when Read() has more to give. Called once, before the first Read().
  virtual void Start(std::function<void()> wake) = 0;

  // Overwrites `part` with what there is. False: nothing now. Never waits.
  virtual bool Read(ReplyPart* part) = 0;

  // What to send when nothing else was for a while, once the head is out; empty: nothing.
  virtual std::string_view keep_alive() const { return {}; }

  // The server stops: the next Read() gives the end, with an error unless it was there already.
  virtual void Interrupt() = 0;

  // Nobody reads any more: the work is given up.
  virtual void Abandon() = 0;

  // What the log line of the request says beside what the connection knows.
  virtual void AddToLog(Json* line) const = 0;
};

// What became of an exchange, for logs and metrics.
struct ExchangeEnd {
  int status = 0;
  int64_t request_bytes = 0, reply_bytes = 0;
  int64_t duration_us = 0;     // from the last byte of the head to the last byte of the reply
  bool was_abandoned = false;  // the client left, or did not read
};

// What is behind the connections. Any thread, several at a time.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;

  // Before the body is read: a reply here refuses it. Connection's thread: must be quick.
  virtual std::optional<HttpReply> CheckHead(const HttpRequest& request) = 0;

  // The reply to a whole request. A thread of the pool: may take its time. Never null.
  virtual std::unique_ptr<PendingReply> Handle(HttpRequest request) = 0;

  // A reply that the server makes itself: the body is too large, the head is broken, ...
  virtual HttpReply Refusal(const HttpRequest& request, int status, std::string_view problem) = 0;

  // Headers that every reply has.
  virtual void AddHeaders(const HttpRequest& request, HttpReply* reply) = 0;

  // After the last byte. `reply` is null when the request was refused before it was handled.
  virtual void OnEnd(const HttpRequest& request, const PendingReply* reply,
                     const ExchangeEnd& end) = 0;
};

// A reply that was there at once.
class ReadyReply : public PendingReply {
 public:
  explicit ReadyReply(HttpReply reply) : reply_(std::move(reply)) {}

  void Start(std::function<void()>) override {}
  bool Read(ReplyPart* part) override {
    *part = {.head = std::move(reply_), .body = {}, .is_last = true};
    return true;
  }
  void Interrupt() override {}
  void Abandon() override {}
  void AddToLog(Json*) const override {}

 private:
  HttpReply reply_;
};

}  // namespace hadal
