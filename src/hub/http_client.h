// One HTTP GET after another, over libcurl. Redirects are followed here and not by the library, so
// that the token provably goes to the hub alone. A client belongs to one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace hadal {

struct HttpSettings {
  std::string
      endpoint;  // "https://huggingface.co": scheme, host and perhaps a path; no "/" at its end
  std::string token;    // empty: none. Sent to the endpoint's scheme, host and port only
  std::string ca_path;  // certificates of whom to trust, PEM; empty: the system's
  int stall_s = 30;     // a connection that brings nothing for so long is given up
};

// kInvalidArgument unless it is an http or https address without user, query and fragment.
Status CheckEndpoint(const std::string& endpoint);

// What came before the body.
struct HttpHead {
  int status = 0;
  int64_t content_length = -1;  // -1: not said
  std::string content_range, link, location;
  std::string error_message;  // X-Error-Message: why a hub refuses
  double retry_after_s = -1;  // -1: not said
};

// Who takes the body of a reply with code 200 or 206.
class BodySink {
 public:
  virtual ~BodySink() = default;
  // Before the first byte, also of an empty body. An error ends the transfer, here and in Write.
  virtual Status Begin(const HttpHead& head) = 0;
  virtual Status Write(std::span<const std::byte> bytes) = 0;
};

// How a GET ended.
struct HttpOutcome {
  Status status = {};      // names the address
  bool may_retry = false;  // the network, the hub's state or its load; not what was asked for
  double wait_s = 0;       // that the hub asks for before a retry
  HttpHead head = {};
};

class HttpClient {
 public:
  // `stop` becomes true when everything is to end; may be null. REQUIRES: CheckEndpoint is ok.
  HttpClient(HttpSettings settings, const std::atomic<bool>* stop);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // From byte `offset` on, where the server can. What the sink returned comes back as it is, and
  // may not be retried; 404 and 410 are kNotFound, 416 kCorrupt, 408, 429 and 5xx
  // kResourceExhausted, other codes kInvalidArgument, the network kIo, `stop` kCancelled.
  HttpOutcome Get(const std::string& url, int64_t offset, BodySink* sink);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hadal
