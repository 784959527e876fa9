#include "hub/http_client.h"

#include <charconv>
#include <mutex>
#include <string_view>
#include <utility>

#include <curl/curl.h>
#include <fmt/format.h>

#include "base/check.h"
#include "base/quote.h"
#include "hub/web_address.h"

namespace hadal {
namespace {

constexpr int kMaxRedirects = 10;
constexpr long kConnectSeconds = 20;
constexpr size_t kMaxHeaderBytes = 16 << 10;  // of one line; longer ones are cut
constexpr double kMaxRetryAfter = 300.0;      // asked again sooner than a hub may say

bool IsRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}
bool IsContent(int status) { return status == 200 || status == 206; }

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// -1 when it is not a plain number.
int64_t ParseCount(std::string_view text) {
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 ? value : -1;
}

void NoteHeader(std::string_view line, HttpHead* head) {
  const size_t colon = line.find(':');
  if (colon == line.npos) return;
  const std::string name = Lower(line.substr(0, colon));
  const std::string_view value = Trimmed(line.substr(colon + 1, kMaxHeaderBytes));
  if (name == "content-length") head->content_length = ParseCount(value);
  if (name == "content-range") head->content_range = value;
  if (name == "link") head->link = value;
  if (name == "location") head->location = value;
  if (name == "x-error-message") head->error_message = value;
  // A date instead of seconds is not worth reading: the hub's clock is not ours.
  if (name == "retry-after") {
    head->retry_after_s = std::min(static_cast<double>(ParseCount(value)), kMaxRetryAfter);
  }
}

// One transfer, as the library's callbacks see it.
struct Transfer {
  HttpHead head = {};
  BodySink* sink = nullptr;
  const std::atomic<bool>* stop = nullptr;
  bool has_begun = false;
  Status sink_status = {};

  Status Begin() {
    if (has_begun || !IsContent(head.status)) return Status::Ok();
    has_begun = true;
    return sink->Begin(head);
  }
};

size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) {  // also of an interim reply: what came before it does not count
    transfer->head = {};
    const size_t blank = line.find(' ');
    if (blank != line.npos) {
      transfer->head.status = static_cast<int>(ParseCount(line.substr(blank + 1, 3)));
    }
  } else {
    NoteHeader(line, &transfer->head);
  }
  return size * count;
}

size_t OnBody(char* data, size_t size, size_t count, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  if (!IsContent(transfer->head.status)) return size * count;  // pages about errors
  transfer->sink_status = transfer->Begin();
  if (transfer->sink_status.ok()) {
    transfer->sink_status = transfer->sink->Write(std::as_bytes(std::span(data, size * count)));
  }
  return transfer->sink_status.ok() ? size * count : 0;
}

int OnProgress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto* transfer = static_cast<Transfer*>(user);
  return transfer->stop != nullptr && *transfer->stop ? 1 : 0;
}

HttpOutcome Fault(Status status) { return {.status = std::move(status)}; }

// A code that is neither content nor a redirect.
HttpOutcome Refusal(const std::string& url, const Transfer& transfer, bool has_token) {
  const HttpHead& head = transfer.head;
  HttpOutcome outcome{.head = head};
  std::string message =
      fmt::format("{}: expected the file, found code {}", Quoted(url, 300), head.status);
  if (!head.error_message.empty()) message += ": " + Quoted(head.error_message, 300);
  if (head.status == 401 || head.status == 403) {
    message += has_token ? " (the token has no access)" : " (a token may be needed: HF_TOKEN)";
    outcome.status = Status::InvalidArgument(std::move(message));
  } else if (head.status == 404 || head.status == 410) {
    outcome.status = Status::NotFound(std::move(message));
  } else if (head.status == 408 || head.status == 429 || head.status >= 500) {
    outcome.may_retry = true;
    outcome.wait_s = std::max(head.retry_after_s, 0.0);
    outcome.status = Status::ResourceExhausted(std::move(message));
  } else if (head.status == 416) {  // what we have of the file is not of this file
    outcome.status = Status::Corrupt(std::move(message));
  } else {
    outcome.status = Status::InvalidArgument(std::move(message));
  }
  return outcome;
}

bool IsNetworkFault(CURLcode code) {
  switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_OUT_OF_MEMORY:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return false;
    default:
      return true;
  }
}

void InitialiseOnce() {
  static std::once_flag once;
  std::call_once(once, [] { HADAL_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK); });
}

}  // namespace

struct HttpClient::State {
  HttpSettings settings;
  const std::atomic<bool>* stop = nullptr;
  CURL* curl = nullptr;
  std::string origin;  // of the endpoint

  void Prepare(Transfer* transfer, char* error_text) const;
  CURLcode Perform(const WebAddress& address, int64_t offset) const;
  HttpOutcome Judge(CURLcode code, const std::string& url, const std::string& error_text,
                    Transfer* transfer) const;
};

Status CheckEndpoint(const std::string& endpoint) {
  ASSIGN_OR_RETURN(const WebAddress address, ParseWebAddress(endpoint));
  if (address.has_query || address.has_fragment || endpoint.ends_with('/')) {
    return Status::InvalidArgument(
        fmt::format("hub {}: expected an address without \"?\" and \"#\" and without a last \"/\"",
                    Quoted(endpoint)));
  }
  return Status::Ok();
}

HttpClient::HttpClient(HttpSettings settings, const std::atomic<bool>* stop)
    : state_(std::make_unique<State>()) {
  InitialiseOnce();
  const Result<WebAddress> endpoint = ParseWebAddress(settings.endpoint);
  HADAL_CHECK(endpoint.ok());
  state_->origin = endpoint->origin;
  state_->settings = std::move(settings);
  state_->stop = stop;
  state_->curl = curl_easy_init();
  HADAL_CHECK(state_->curl != nullptr);
}

HttpClient::~HttpClient() { curl_easy_cleanup(state_->curl); }

// Proxies are the library's: it reads http_proxy, https_proxy, all_proxy and no_proxy.
void HttpClient::State::Prepare(Transfer* transfer, char* error_text) const {
  curl_easy_reset(curl);  // connections stay open
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "hadal");
  curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(settings.stall_s));
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, 256L << 10);
  if (!settings.ca_path.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, settings.ca_path.c_str());
  }
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error_text);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &OnHeader);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &OnBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &OnProgress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, transfer);
}

CURLcode HttpClient::State::Perform(const WebAddress& address, int64_t offset) const {
  curl_slist* headers = curl_slist_append(nullptr, "Accept-Encoding: identity");
  if (!settings.token.empty() && address.origin == origin) {
    headers = curl_slist_append(headers, ("Authorization: Bearer " + settings.token).c_str());
  }
  if (offset > 0)
    headers = curl_slist_append(headers, fmt::format("Range: bytes={}-", offset).c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_URL, address.url.c_str());
  const CURLcode code = curl_easy_perform(curl);
  curl_slist_free_all(headers);
  return code;
}

HttpOutcome HttpClient::State::Judge(CURLcode code, const std::string& url,
                                     const std::string& error_text, Transfer* transfer) const {
  if (!transfer->sink_status.ok()) return {.status = transfer->sink_status, .head = transfer->head};
  if (stop != nullptr && *stop) return Fault(Status::Cancelled("download stopped"));
  if (code != CURLE_OK) {
    const std::string why = error_text.empty() ? curl_easy_strerror(code) : error_text;
    return {.status = Status::Io(fmt::format("{}: {}", Quoted(url, 300), Quoted(why, 200))),
            .may_retry = IsNetworkFault(code),
            .head = transfer->head};
  }
  if (!IsContent(transfer->head.status)) return Refusal(url, *transfer, !settings.token.empty());
  return {.status = transfer->Begin(), .head = transfer->head};
}

HttpOutcome HttpClient::Get(const std::string& url, int64_t offset, BodySink* sink) {
  Result<WebAddress> address = ParseWebAddress(url);
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    if (!address.ok()) return Fault(address.status().Annotate(Quoted(url, 300)));
    Transfer transfer{.sink = sink, .stop = state_->stop};
    char error_text[CURL_ERROR_SIZE] = "";
    state_->Prepare(&transfer, error_text);
    const CURLcode code = state_->Perform(*address, offset);
    if (code != CURLE_OK || !IsRedirect(transfer.head.status)) {
      return state_->Judge(code, url, error_text, &transfer);
    }
    address = ResolveWebAddress(*address, transfer.head.location);
  }
  return Fault(Status::InvalidArgument(fmt::format("{}: expected at most {} redirects, found more",
                                                   Quoted(url, 300), kMaxRedirects)));
}

}  // namespace hadal
