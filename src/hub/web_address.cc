#include "hub/web_address.h"

#include <algorithm>
#include <memory>

#include <curl/curl.h>
#include <fmt/format.h>

#include "base/quote.h"

namespace hadal {
namespace {

using UrlHandle = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

// Empty where the address has no such part.
std::string Part(CURLU* handle, CURLUPart part, unsigned int flags = 0) {
  char* text = nullptr;
  if (curl_url_get(handle, part, &text, flags) != CURLUE_OK || text == nullptr) return "";
  std::string copy = text;
  curl_free(text);
  return copy;
}

Result<WebAddress> Describe(CURLU* handle, const std::string& said) {
  std::string scheme = Part(handle, CURLUPART_SCHEME);
  std::string host = Part(handle, CURLUPART_HOST);
  for (std::string* text : {&scheme, &host}) {
    std::ranges::transform(*text, text->begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
  }
  if ((scheme != "http" && scheme != "https") || host.empty()) {
    return Status::InvalidArgument(
        fmt::format("address {}: expected http or https and a host", Quoted(said)));
  }
  WebAddress address;
  address.url = Part(handle, CURLUPART_URL);
  address.origin =
      fmt::format("{}://{}:{}", scheme, host, Part(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT));
  address.is_encrypted = scheme == "https";
  address.has_query = !Part(handle, CURLUPART_QUERY).empty();
  address.has_fragment = !Part(handle, CURLUPART_FRAGMENT).empty();
  return address;
}

Status BadAddress(const std::string& said) {
  return Status::InvalidArgument(fmt::format(
      "address {}: expected http or https, a host, and no user or password", Quoted(said)));
}

}  // namespace

Result<WebAddress> ParseWebAddress(const std::string& url) {
  const UrlHandle handle(curl_url(), &curl_url_cleanup);
  if (curl_url_set(handle.get(), CURLUPART_URL, url.c_str(), CURLU_DISALLOW_USER) != CURLUE_OK) {
    return BadAddress(url);
  }
  return Describe(handle.get(), url);
}

Result<WebAddress> ResolveWebAddress(const WebAddress& base, const std::string& reference) {
  const UrlHandle handle(curl_url(), &curl_url_cleanup);
  if (curl_url_set(handle.get(), CURLUPART_URL, base.url.c_str(), 0) != CURLUE_OK ||
      curl_url_set(handle.get(), CURLUPART_URL, reference.c_str(), CURLU_DISALLOW_USER) !=
          CURLUE_OK) {
    return BadAddress(reference);
  }
  ASSIGN_OR_RETURN(WebAddress address, Describe(handle.get(), reference));
  if (base.is_encrypted && !address.is_encrypted) {
    return Status::InvalidArgument(
        fmt::format("address {}: expected https, as before the redirect", Quoted(reference)));
  }
  return address;
}

}  // namespace hadal
