// Who may ask, from where, and how often: API keys, origins of web pages, rates.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "server/http_message.h"

namespace hadal {

using Sha256 = std::array<uint8_t, 32>;
Sha256 HashOf(std::string_view text);

// Keys are kept and compared as hashes: neither memory nor the time of a comparison tells them.
// Immutable, any thread.
class ApiKeys {
 public:
  // A line each: a key, or "sha256:" and the hex digits of its hash; before it, with a blank
  // between, a name for the log may stand. Empty lines and lines that begin with # are skipped.
  // kInvalidArgument names `what` and the line, never the key.
  static Result<ApiKeys> Parse(std::string_view text, std::string_view what);

  bool empty() const { return keys_.empty(); }

  // The name of the key that a request brings, as "Authorization: Bearer" or "x-api-key". Nothing:
  // it brings none that is known.
  std::optional<std::string> Find(const HttpRequest& request) const;

 private:
  struct Key {
    std::string name;
    Sha256 hash = {};
  };
  std::vector<Key> keys_;
};

// A bucket of requests for each key (or client address) that fills at a steady rate. Any thread.
class RateLimiter {
 public:
  // requests_per_minute 0: no limit.
  explicit RateLimiter(int requests_per_minute) : per_minute_(requests_per_minute) {}

  // 0: go on; else the seconds after which there is room again.
  int SecondsToWait(const std::string& who, std::chrono::steady_clock::time_point now);

 private:
  struct Bucket {
    double room = 0;  // requests
    std::chrono::steady_clock::time_point filled;
  };
  void ForgetFull(std::chrono::steady_clock::time_point now);

  const double per_minute_;
  std::mutex mutex_;
  std::unordered_map<std::string, Bucket> buckets_;  // guarded by mutex_
};

// Pages of which origins may ask. Immutable.
class CorsPolicy {
 public:
  // "*" allows all; without origins none is allowed.
  explicit CorsPolicy(std::vector<std::string> origins) : origins_(std::move(origins)) {}

  // Adds the headers of an answer to a page of an allowed origin.
  void AddHeaders(const HttpRequest& request, std::vector<HttpHeader>* headers) const;

  // Whether `request` is a browser asking for permission.
  static bool IsPreflight(const HttpRequest& request) {
    return request.method == "OPTIONS" && !request.Header("origin").empty();
  }

 private:
  bool Allows(std::string_view origin) const;
  std::vector<std::string> origins_;
};

}  // namespace hadal
