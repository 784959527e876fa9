// Any bytes as a hub's answers: an error of one line, or file names that stay below a folder and
// sizes that add up.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "hub/repo_listing.h"
#include "hub/repo_name.h"
#include "hub/web_address.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hadal;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto is_one_line = [](const Status& status) {
    return status.message().find('\n') == std::string::npos;
  };
  HADAL_CHECK(is_one_line(ParseRevision(text, "fuzz").status()));
  HADAL_CHECK(is_one_line(ParseRepoName(text).status()));
  const WebAddress base = ParseWebAddress("https://hub.example/a").value();
  const auto next = ResolveWebAddress(base, NextPage(text));
  HADAL_CHECK(is_one_line(next.status()));
  HADAL_CHECK(!next.ok() || next->is_encrypted);

  std::vector<RemoteFile> files;
  Status status = AppendListing(text, "fuzz", &files);
  if (status.ok()) status = CheckListing("fuzz", &files);
  HADAL_CHECK(is_one_line(status));
  if (!status.ok()) return 0;
  int64_t total = 0;
  for (const RemoteFile& file : files) {
    HADAL_CHECK(!file.path.empty() && file.path.front() != '/' && file.path.back() != '/');
    for (const char* part : {"../", "./", "//"}) {
      HADAL_CHECK(!("/" + file.path).starts_with(std::string("/") + part));
    }
    HADAL_CHECK(("/" + file.path + "/").find("/../") == std::string::npos);
    HADAL_CHECK(file.path.find('\0') == std::string::npos);
    HADAL_CHECK(file.hash.size() == (file.hash_kind == HashKind::kSha256 ? 64u : 40u));
    HADAL_CHECK(file.size >= 0);
    total += file.size;
    HADAL_CHECK(total >= 0);
  }
  return 0;
}
