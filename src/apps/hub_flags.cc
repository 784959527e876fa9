#include "apps/hub_flags.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "sys/mapped_file.h"

namespace hadal {
namespace {

constexpr int64_t kMaxTokenBytes = 4096;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// $HOME below `folder` where the variable is not set.
std::string FolderOf(const char* variable, const char* below_home) {
  std::string value = Variable(variable);
  if (!value.empty()) return value;
  const std::string home = Variable("HOME");
  return (home.empty() ? "." : home) + "/" + below_home;
}

std::string Trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

bool IsTrue(const std::string& value) {
  return value == "1" || value == "true" || value == "TRUE" || value == "yes" || value == "on";
}

std::string TokenPath() {
  std::string path = Variable("HF_TOKEN_PATH");
  if (!path.empty()) return path;
  const std::string home = Variable("HF_HOME");
  if (!home.empty()) return home + "/token";
  return FolderOf("XDG_CACHE_HOME", ".cache") + "/huggingface/token";
}

// Empty: none.
Result<std::string> ReadToken() {
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    const std::string token = Trimmed(Variable(name));
    if (!token.empty()) return token;
  }
  if (IsTrue(Variable("HF_HUB_DISABLE_IMPLICIT_TOKEN"))) return std::string();
  const Result<std::string> text = ReadFile(TokenPath(), kMaxTokenBytes);
  if (text.status().code() == StatusCode::kNotFound) return std::string();
  RETURN_IF_ERROR(text.status().Annotate("token of the hub"));
  return Trimmed(*text);
}

}  // namespace

Result<HttpSettings> HubSettings() {
  HttpSettings settings;
  settings.endpoint = Variable("HF_ENDPOINT");
  if (settings.endpoint.empty()) settings.endpoint = "https://huggingface.co";
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  RETURN_IF_ERROR(CheckEndpoint(settings.endpoint).Annotate("HF_ENDPOINT"));
  for (const char* name : {"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (settings.ca_path.empty()) settings.ca_path = Variable(name);
  }
  ASSIGN_OR_RETURN(settings.token, ReadToken());
  // It becomes a line of a request. The message must not hold it.
  if (!std::ranges::all_of(settings.token, [](char c) { return c > ' ' && c <= '~'; })) {
    return Status::InvalidArgument("token of the hub: expected printable ASCII without blanks");
  }
  return settings;
}

ModelStore PulledModels() {
  const std::string folder = Variable("HADAL_HUB_DIR");
  if (!folder.empty()) return ModelStore(folder);
  return ModelStore(FolderOf("XDG_DATA_HOME", ".local/share") + "/hadal/models");
}

}  // namespace hadal
