#include "engine/trace_writer.h"

#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/engine/engine_harness.h"
#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

std::string Content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Json Events(const std::string& path) {
  Result<Json> events = ParseJson(Content(path), path);
  EXPECT_TRUE(events.ok()) << events.status().message();
  return events.ok() ? events.value() : Json::array();
}

TEST(TraceWriter, WritesAJsonListOfEvents) {
  const TempDir dir;
  const std::string path = dir.File("trace.json");
  {
    auto trace = TraceWriter::Open(path);
    ASSERT_TRUE(trace.ok());
    trace.value()->Span("step", 10, 30, {{"tokens", 5}});
    trace.value()->Counter("running", 30, 2);
    trace.value()->AnswerSpan("queue", 7, 1, 4);
  }
  const Json events = Events(path);
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[2]["ph"], "X");
  EXPECT_EQ(events[2]["ts"], 10);
  EXPECT_EQ(events[2]["dur"], 20);
  EXPECT_EQ(events[2]["args"]["tokens"], 5);
  EXPECT_EQ(events[3]["args"]["value"], 2);
  EXPECT_EQ(events[4]["ph"], "b");
  EXPECT_EQ(events[5]["ph"], "e");
  EXPECT_EQ(events[5]["id"], 7);
}

TEST(TraceWriter, EndsAtItsLimitAndIsStillSound) {
  const TempDir dir;
  const std::string path = dir.File("trace.json");
  {
    auto trace = TraceWriter::Open(path, 2000);
    for (int i = 0; i < 1000; ++i) trace.value()->Span("step", i, i + 1);
  }
  EXPECT_LT(Content(path).size(), 2500u);
  EXPECT_GT(Events(path).size(), 10u);
}

TEST(TraceWriter, SaysWhichFileItCannotMake) {
  const auto trace = TraceWriter::Open("/no/such/folder/trace.json");
  ASSERT_FALSE(trace.ok());
  EXPECT_NE(trace.status().message().find("/no/such/folder"), std::string::npos);
}

TEST(TraceWriter, TellsOfEveryStepAndEveryAnswer) {
  const TempDir dir;
  const std::string path = dir.File("trace.json");
  int num_steps = 0;
  {
    const FakeRunnerOptions options;
    auto fake = std::make_unique<FakeRunner>(options);
    FakeRunner* const runner = fake.get();
    auto trace = TraceWriter::Open(path);
    Engine engine(OptionsFor(options), std::move(fake), nullptr, nullptr, std::move(trace).value());
    GenerationRequest request;
    request.max_tokens = 7;
    for (uint64_t i = 0; i < 3; ++i) {
      request.input = FakePrompt(9, i);
      ReadOne(engine.Submit(request).value().get());
    }
    num_steps = runner->num_steps();
  }
  std::map<std::string, int> counts;
  for (const Json& event : Events(path)) ++counts[event["name"].get<std::string>()];
  EXPECT_EQ(counts["execute"], num_steps);
  EXPECT_EQ(counts["step"], num_steps);
  for (const std::string name : {"answer", "queue", "prompt", "decode"})
    EXPECT_EQ(counts[name], 6) << name << ": a begin and an end of each";
}

}  // namespace
}  // namespace hadal
