#include "server/access.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace hadal {
namespace {

using std::chrono::seconds;

HttpRequest With(const std::string& name, const std::string& value) {
  HttpRequest request;
  request.headers.push_back({name, value});
  return request;
}

TEST(ApiKeys, FindsKeysInTheHeadersOfBothApis) {
  const Result<ApiKeys> keys =
      ApiKeys::Parse("# comment\n\nfirst-key\r\nteam b  second-key\n", "f");
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  EXPECT_EQ(keys->Find(With("authorization", "Bearer first-key")), "key 1");
  EXPECT_EQ(keys->Find(With("authorization", "bearer second-key")), "team b");
  EXPECT_EQ(keys->Find(With("x-api-key", "second-key")), "team b");
  for (const char* wrong : {"Bearer first-ke", "Bearer first-keys", "Bearer ", "first-key", ""})
    EXPECT_FALSE(keys->Find(With("authorization", wrong))) << wrong;
  EXPECT_FALSE(keys->Find(HttpRequest()));
}

TEST(ApiKeys, TakesHashesInPlaceOfKeys) {
  // printf abc | sha256sum
  const Result<ApiKeys> keys = ApiKeys::Parse(
      "sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD", "f");
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  EXPECT_TRUE(keys->Find(With("x-api-key", "abc")));
  EXPECT_FALSE(keys->Find(With("x-api-key", "abd")));
}

TEST(ApiKeys, NamesTheLineAndNeverTheKey) {
  const Result<ApiKeys> keys = ApiKeys::Parse("good\nsha256:12xz", "keys.txt");
  ASSERT_FALSE(keys.ok());
  EXPECT_NE(keys.status().message().find("keys.txt: line 2"), std::string::npos);
  EXPECT_EQ(keys.status().message().find("12xz"), std::string::npos);
  EXPECT_FALSE(ApiKeys::Parse("# none\n", "f").ok());
}

TEST(RateLimiter, LetsABurstThroughAndThenTheRate) {
  RateLimiter limiter(60);
  const std::chrono::steady_clock::time_point start{seconds(1000)};
  for (int i = 0; i < 60; ++i) EXPECT_EQ(limiter.SecondsToWait("a", start), 0);
  EXPECT_EQ(limiter.SecondsToWait("a", start), 1);
  EXPECT_EQ(limiter.SecondsToWait("b", start), 0) << "each has a bucket of its own";
  EXPECT_EQ(limiter.SecondsToWait("a", start + seconds(1)), 0);
  EXPECT_EQ(limiter.SecondsToWait("a", start + seconds(1)), 1);
}

TEST(RateLimiter, TellsHowLongToWaitForASlowRate) {
  RateLimiter limiter(2);
  const std::chrono::steady_clock::time_point start{seconds(1000)};
  limiter.SecondsToWait("a", start);
  limiter.SecondsToWait("a", start);
  EXPECT_EQ(limiter.SecondsToWait("a", start), 30);
  EXPECT_EQ(RateLimiter(0).SecondsToWait("a", start), 0);
}

TEST(CorsPolicy, AnswersPagesOfAllowedOriginsOnly) {
  const CorsPolicy policy({"https://a.example"});
  std::vector<HttpHeader> headers;
  policy.AddHeaders(With("origin", "https://a.example"), &headers);
  ASSERT_GE(headers.size(), 2u);
  EXPECT_EQ(headers[1].name, "Access-Control-Allow-Origin");
  EXPECT_EQ(headers[1].value, "https://a.example");
  headers.clear();
  policy.AddHeaders(With("origin", "https://b.example"), &headers);
  ASSERT_EQ(headers.size(), 1u);
  EXPECT_EQ(headers[0].name, "Vary");
  headers.clear();
  CorsPolicy({}).AddHeaders(With("origin", "https://a.example"), &headers);
  EXPECT_TRUE(headers.empty());
}

TEST(CorsPolicy, AllowsWhatABrowserAsksFor) {
  HttpRequest request = With("origin", "https://a.example");
  request.method = "OPTIONS";
  request.headers.push_back({"access-control-request-headers", "x-stainless-os"});
  std::vector<HttpHeader> headers;
  CorsPolicy({"*"}).AddHeaders(request, &headers);
  bool has_headers = false;
  for (const HttpHeader& header : headers)
    has_headers |=
        header.name == "Access-Control-Allow-Headers" && header.value == "x-stainless-os";
  EXPECT_TRUE(has_headers);
}

}  // namespace
}  // namespace hadal
