#include "hub/web_address.h"

#include <gtest/gtest.h>

namespace hadal {
namespace {

TEST(WebAddress, OriginIsSchemeHostAndPort) {
  EXPECT_EQ(ParseWebAddress("https://Hub.example/a/b")->origin, "https://hub.example:443");
  EXPECT_EQ(ParseWebAddress("HTTP://hub.example:80/")->origin, "http://hub.example:80");
  EXPECT_EQ(ParseWebAddress("http://127.0.0.1:8080")->origin, "http://127.0.0.1:8080");
}

TEST(WebAddress, RefusesWhatIsNoPlainWebAddress) {
  for (const char* url : {"", "ftp://h/", "file:///etc/passwd", "//h/x", "http://", "http://u@h/",
                          "http://u:p@h/", "javascript:1"}) {
    EXPECT_EQ(ParseWebAddress(url).status().code(), StatusCode::kInvalidArgument) << url;
  }
}

TEST(WebAddress, LeadsWhereAReferencePoints) {
  const WebAddress base = *ParseWebAddress("https://hub.example/a/b?c=d");
  EXPECT_EQ(ResolveWebAddress(base, "/x?y=z")->url, "https://hub.example/x?y=z");
  EXPECT_EQ(ResolveWebAddress(base, "https://cdn.example/x")->origin, "https://cdn.example:443");
  // A host that only looks like the hub's is another.
  EXPECT_NE(ResolveWebAddress(base, "https://hub.example.evil/x")->origin, base.origin);
  EXPECT_NE(ResolveWebAddress(base, "//evil.example/x")->origin, base.origin);
  EXPECT_NE(ResolveWebAddress(base, "https://hub.example:444/")->origin, base.origin);
}

TEST(WebAddress, NeverLeadsFromAnEncryptedAddressToAPlainOne) {
  const WebAddress base = *ParseWebAddress("https://hub.example/a");
  for (const char* to : {"http://hub.example/a", "http://evil.example/", "ftp://x/", "file:///x",
                         "https://u:p@hub.example/"}) {
    EXPECT_EQ(ResolveWebAddress(base, to).status().code(), StatusCode::kInvalidArgument) << to;
  }
}

}  // namespace
}  // namespace hadal
