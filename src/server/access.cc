#include "server/access.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/check.h"

namespace hadal {
namespace {

constexpr std::string_view kHashPrefix = "sha256:";
constexpr size_t kMaxBuckets = 65'536;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<Sha256> ParseHash(std::string_view hex) {
  Sha256 hash;
  if (hex.size() != 2 * hash.size()) return std::nullopt;
  for (size_t i = 0; i < hash.size(); ++i) {
    const int high = HexDigit(hex[2 * i]), low = HexDigit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    hash[i] = static_cast<uint8_t>(16 * high + low);
  }
  return hash;
}

// Takes as long for hashes that differ early as for those that differ late.
bool IsSame(const Sha256& a, const Sha256& b) {
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

std::string_view Stripped(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string_view PresentedKey(const HttpRequest& request) {
  static constexpr std::string_view kBearer = "bearer ";
  const std::string_view header = request.Header("authorization");
  const bool is_bearer =
      header.size() > kBearer.size() &&
      std::equal(kBearer.begin(), kBearer.end(), header.begin(),
                 [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
  if (is_bearer) return Stripped(header.substr(kBearer.size()));
  return Stripped(request.Header("x-api-key"));
}

}  // namespace

Sha256 HashOf(std::string_view text) {
  Sha256 hash;
  unsigned size = 0;
  const int is_done =
      EVP_Digest(text.data(), text.size(), hash.data(), &size, EVP_sha256(), nullptr);
  HADAL_CHECK(is_done == 1 && size == hash.size());
  return hash;
}

Result<ApiKeys> ApiKeys::Parse(std::string_view text, std::string_view what) {
  ApiKeys keys;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Stripped(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    const size_t blank = line.find_last_of(" \t");
    const std::string_view key = blank == std::string_view::npos ? line : line.substr(blank + 1);
    Key& entry = keys.keys_.emplace_back();
    entry.name = blank == std::string_view::npos ? fmt::format("key {}", keys.keys_.size())
                                                 : std::string(Stripped(line.substr(0, blank)));
    if (!key.starts_with(kHashPrefix)) {
      entry.hash = HashOf(key);
      continue;
    }
    const std::optional<Sha256> hash = ParseHash(key.substr(kHashPrefix.size()));
    if (!hash) {
      return Status::InvalidArgument(
          fmt::format("{}: line {}: expected 64 hex digits behind sha256:, found something else",
                      what, number));
    }
    entry.hash = *hash;
  }
  if (keys.empty())
    return Status::InvalidArgument(fmt::format("{}: expected at least one key, found none", what));
  return keys;
}

std::optional<std::string> ApiKeys::Find(const HttpRequest& request) const {
  const std::string_view presented = PresentedKey(request);
  if (presented.empty()) return std::nullopt;
  const Sha256 hash = HashOf(presented);
  const Key* found = nullptr;
  for (const Key& key : keys_)
    if (IsSame(key.hash, hash)) found = &key;
  return found == nullptr ? std::nullopt : std::optional(found->name);
}

int RateLimiter::SecondsToWait(const std::string& who, std::chrono::steady_clock::time_point now) {
  if (per_minute_ <= 0) return 0;
  const std::lock_guard lock(mutex_);
  if (buckets_.size() >= kMaxBuckets) ForgetFull(now);
  const auto [place, is_new] = buckets_.try_emplace(who, Bucket{per_minute_, now});
  Bucket& bucket = place->second;
  const double minutes = std::chrono::duration<double>(now - bucket.filled).count() / 60;
  bucket.room = std::min(per_minute_, bucket.room + minutes * per_minute_);
  bucket.filled = now;
  if (bucket.room >= 1) {
    bucket.room -= 1;
    return 0;
  }
  return std::max(1, static_cast<int>(std::ceil((1 - bucket.room) / per_minute_ * 60)));
}

// Who has not asked for a minute has a full bucket, as has who never asked.
void RateLimiter::ForgetFull(std::chrono::steady_clock::time_point now) {
  std::erase_if(buckets_, [now](const auto& entry) {
    return now - entry.second.filled >= std::chrono::minutes(1);
  });
  // More strangers in a minute than we can tell apart: memory is worth more than their rates.
  if (buckets_.size() >= kMaxBuckets) buckets_.clear();
}

bool CorsPolicy::Allows(std::string_view origin) const {
  return std::ranges::any_of(
      origins_, [origin](const std::string& one) { return one == "*" || one == origin; });
}

void CorsPolicy::AddHeaders(const HttpRequest& request, std::vector<HttpHeader>* headers) const {
  const std::string_view origin = request.Header("origin");
  if (origin.empty() || origins_.empty()) return;
  headers->push_back({"Vary", "Origin"});
  if (!Allows(origin)) return;
  headers->push_back({"Access-Control-Allow-Origin", std::string(origin)});
  headers->push_back({"Access-Control-Expose-Headers", "x-request-id, retry-after"});
  if (!IsPreflight(request)) return;
  headers->push_back({"Access-Control-Allow-Methods", "GET, POST, OPTIONS"});
  const std::string_view asked = request.Header("access-control-request-headers");
  headers->push_back({"Access-Control-Allow-Headers",
                      asked.empty() ? "authorization, content-type" : std::string(asked)});
  headers->push_back({"Access-Control-Max-Age", "600"});
}

}  // namespace hadal
