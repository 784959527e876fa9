#include "server/field_reader.h"

#include <string>

#include <gtest/gtest.h>

#include "server/api_error.h"

namespace hadal {
namespace {

std::string ErrorOf(const Status& status) { return status.ok() ? "" : status.message(); }

TEST(FieldReader, LeavesTargetsAloneWhereNothingIsSaid) {
  const Json object = {{"a", nullptr}};
  const FieldReader fields(object);
  float number = 5;
  int whole = 6;
  bool flag = true;
  std::string text = "as before";
  EXPECT_TRUE(fields.Number("a", 0, 1, &number).ok());
  EXPECT_TRUE(fields.Integer("b", 0, 1, &whole).ok());
  EXPECT_TRUE(fields.Flag("a", &flag).ok());
  EXPECT_TRUE(fields.Text("b", &text).ok());
  EXPECT_EQ(number, 5);
  EXPECT_EQ(whole, 6);
  EXPECT_TRUE(flag);
  EXPECT_EQ(text, "as before");
}

TEST(FieldReader, NamesThePathWhatWasExpectedAndWhatWasFound) {
  const Json object = {{"n", "five"}, {"list", {"a", 3}}, {"big", 1e300}};
  const FieldReader fields(object, "outer");
  int whole = 0;
  std::vector<std::string> texts;
  EXPECT_EQ(ErrorOf(fields.Integer("n", 1, 9, &whole)),
            "outer.n: expected a whole number from 1 to 9, found the text \"five\"");
  EXPECT_EQ(ErrorOf(fields.Texts("list", &texts)), "outer.list[1]: expected a string, found 3");
  EXPECT_FALSE(fields.Integer("big", INT64_MIN, INT64_MAX, &whole).ok());
  EXPECT_EQ(ErrorOf(fields.Only("n", {"one", 2})),
            "outer.n: expected \"one\" or 2, found the text \"five\"");
  EXPECT_EQ(ErrorOf(fields.Refuse("n", "not here")), "outer.n: not here");
  EXPECT_EQ(FieldOf(ErrorOf(fields.Refuse("n", "not here"))), "outer.n");
}

TEST(FieldReader, TakesWholeNumbersHoweverTheyAreWritten) {
  const Json object = Json::parse(R"({"a": 8.0, "b": 18446744073709551615, "c": 8.5})");
  const FieldReader fields(object);
  int whole = 0;
  EXPECT_TRUE(fields.Integer("a", 0, 10, &whole).ok());
  EXPECT_EQ(whole, 8);
  EXPECT_FALSE(fields.Integer("b", 0, INT64_MAX, &whole).ok());
  EXPECT_FALSE(fields.Integer("c", 0, 10, &whole).ok());
}

TEST(ApiError, SpellsBothDialects) {
  const Status status = Status::InvalidArgument("messages[2].role: expected user, found 5");
  const Json open_ai = Json::parse(ErrorReply(ApiDialect::kOpenAi, status).body);
  EXPECT_EQ(open_ai["error"]["param"], "messages[2].role");
  EXPECT_EQ(open_ai["error"]["type"], "invalid_request_error");
  const Json anthropic = Json::parse(ErrorReply(ApiDialect::kAnthropic, status).body);
  EXPECT_EQ(anthropic["type"], "error");
  EXPECT_EQ(anthropic["error"]["message"], status.message());
}

TEST(ApiError, SaysWhenToTryAgain) {
  const HttpReply reply = ErrorReply(ApiDialect::kOpenAi, Status::ResourceExhausted("full"));
  EXPECT_EQ(reply.status, 429);
  ASSERT_EQ(reply.headers.size(), 1u);
  EXPECT_EQ(reply.headers[0].name, "Retry-After");
}

// C040: the server died while it wrote an error that quoted the request.
TEST(ApiError, IsValidUtf8WhateverItQuotes) {
  const HttpReply reply = ErrorReply(ApiDialect::kOpenAi, Status::InvalidArgument("a: \xFF\xC3"));
  EXPECT_TRUE(Json::accept(reply.body));
}

TEST(ApiError, FindsNoFieldInOrdinaryWords) {
  EXPECT_EQ(FieldOf("there is nothing: at all"), "");
  EXPECT_EQ(FieldOf("stop_token_ids[0]: expected"), "stop_token_ids[0]");
  EXPECT_EQ(FieldOf("n"), "");
}

}  // namespace
}  // namespace hadal
