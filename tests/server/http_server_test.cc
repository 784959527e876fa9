#include "server/http_server.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/engine_harness.h"
#include "tests/server/loopback.h"

namespace hadal {
namespace {

using std::chrono::milliseconds;

constexpr const char* kAsk = R"({"messages": [{"role": "user", "content": "Hello"}]})";
constexpr const char* kAskStreamed =
    R"({"messages": [{"role": "user", "content": "Hello"}], "stream": true})";

// More than an answer says before the tests hold it.
std::string LongText() {
  std::string text;
  for (int i = 0; i < 150; ++i) text += " word";
  return text;
}

// After some tokens the answer stands still, until it is released or broken off.
void HoldAfterSomeTokens(FakeRunner* runner) {
  runner->holds = [runner](const BatchPlan&) { return runner->num_steps() > 5; };
}

// One that says LongText(), with options of its own.
struct LongTextEngine {
  LongTextEngine(FakeRunnerOptions runner_options, const EngineOptions& options) {
    std::unique_ptr<Tokenizer> tokenizer = TinyTokenizer();
    runner_options.vocab_size = 4096;
    runner_options.eos_tokens = {kTinyEos};
    auto fake = std::make_unique<FakeRunner>(runner_options);
    fake->choose = Reply(tokenizer->Encode(LongText()));
    runner = fake.get();
    HoldAfterSomeTokens(runner);
    engine = std::make_unique<Engine>(options, std::move(fake), std::move(tokenizer));
  }

  FakeRunner* runner = nullptr;
  std::unique_ptr<Engine> engine;
};

// Waits for what happens on other threads, at most five seconds.
template <class Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 500; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

TEST(HttpServer, AnswersPlainAndStreamed) {
  TextEngine text("The answer.");
  Loopback loopback(text.engine.get());
  Client plain(loopback.port()), streamed(loopback.port());
  plain.Post("/v1/chat/completions", kAsk);
  EXPECT_EQ(plain.Status(), 200);
  EXPECT_NE(plain.ReadUntil("The answer.").find("\"content\":\"The answer.\""), std::string::npos);
  streamed.Post("/v1/chat/completions", kAskStreamed);
  EXPECT_NE(streamed.ReadUntil("[DONE]").find("data: [DONE]"), std::string::npos);
}

TEST(HttpServer, KeepsAConnectionForRequestsThatFollow) {
  TextEngine text("ok");
  Loopback loopback(text.engine.get());
  Client client(loopback.port());
  for (int i = 0; i < 3; ++i) {
    client.Post("/v1/chat/completions", kAsk);
    EXPECT_EQ(client.Status(), 200);
    client.ReadUntil("completion_tokens");
    client.Forget();
  }
  // Two at once: the second waits in the socket.
  client.Get("/health");
  client.Get("/version");
  EXPECT_NE(client.ReadUntil("\"version\"").find("\"status\":\"ready\""), std::string::npos);
}

TEST(HttpServer, SaysThatTheModelIsBeingLoaded) {
  Loopback loopback(nullptr);
  Client health(loopback.port()), ask(loopback.port());
  health.Get("/health");
  EXPECT_EQ(health.Status(), 503);
  EXPECT_NE(health.ReadUntil("loading").find("\"status\":\"loading\""), std::string::npos);
  ask.Post("/v1/chat/completions", kAsk);
  EXPECT_EQ(ask.Status(), 503);
  EXPECT_NE(ask.ReadUntil("loaded").find("Retry-After"), std::string::npos);
}

// C116: an endless header line, a body that claims 100 GiB.
TEST(HttpServer, RefusesHeadsAndBodiesThatAreTooLong) {
  TextEngine text("ok");
  Loopback loopback(text.engine.get(), {.max_body_bytes = 10'000});
  Client endless(loopback.port());
  endless.Send("GET /health HTTP/1.1\r\nX: ");
  for (int i = 0; i < 200 && endless.Send(std::string(1000, 'x')); ++i) {
  }
  EXPECT_EQ(endless.Status(), 431);

  Client claims(loopback.port());
  claims.Send("POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 107374182400\r\n\r\n");
  EXPECT_EQ(claims.Status(), 413);
  EXPECT_NE(claims.ReadAll().find("10000"), std::string::npos);

  Client chunked(loopback.port());
  chunked.Send("POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 30 && chunked.Send("3e8\r\n" + std::string(1000, ' ') + "\r\n"); ++i) {
  }
  EXPECT_EQ(chunked.Status(), 413);

  Client good(loopback.port());
  good.Post("/v1/chat/completions", kAsk);
  EXPECT_EQ(good.Status(), 200);
}

TEST(HttpServer, RefusesWhatIsNotHttp) {
  Loopback loopback(nullptr);
  Client client(loopback.port());
  client.Send("\x16\x03\x01 hello\r\n\r\n");
  EXPECT_EQ(client.Status(), 400);
  EXPECT_NE(client.ReadAll().find("\"error\""), std::string::npos);
}

// C116: a byte per second filled all workers.
TEST(HttpServer, EndsConnectionsThatSendTooSlowly) {
  TextEngine text("ok");
  Loopback loopback(text.engine.get(),
                    {.header_timeout = milliseconds(1000), .body_timeout = milliseconds(1000)});
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 20; ++i) {
    slow.push_back(std::make_unique<Client>(loopback.port()));
    slow.back()->Send(i % 2 == 0
                          ? "GET /hea"
                          : "POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 99\r\n\r\n{");
  }
  Client good(loopback.port());
  good.Post("/v1/chat/completions", kAsk);
  EXPECT_EQ(good.Status(), 200);
  good.Close();
  for (const auto& client : slow) {
    client->ReadAll();
    EXPECT_TRUE(client->is_closed());
  }
  EXPECT_TRUE(Eventually([&] { return loopback.server->num_connections() == 0; }));
}

TEST(HttpServer, TurnsConnectionsAwayBeyondItsLimit) {
  TextEngine text("ok");
  Loopback loopback(text.engine.get(), {.max_connections = 2});
  Client first(loopback.port()), second(loopback.port());
  ASSERT_TRUE(Eventually([&] { return loopback.server->num_connections() == 2; }));
  Client third(loopback.port());
  EXPECT_EQ(third.Status(), 503);
  EXPECT_NE(third.ReadAll().find("too many connections"), std::string::npos);
  first.Close();
  ASSERT_TRUE(Eventually([&] { return loopback.server->num_connections() == 1; }));
  Client fourth(loopback.port());
  fourth.Get("/health");
  EXPECT_EQ(fourth.Status(), 200);
}

// C108: work went on after the client had left.
TEST(HttpServer, CancelsWhatNobodyReads) {
  for (const char* body : {kAsk, kAskStreamed}) {
    TextEngine text(LongText());
    HoldAfterSomeTokens(text.runner);
    Loopback loopback(text.engine.get());
    Client client(loopback.port());
    client.Post("/v1/chat/completions", body);
    if (body == kAskStreamed) client.ReadUntil("word");
    text.runner->WaitUntilHeld();
    client.Close();
    ASSERT_TRUE(Eventually([&] { return text.engine->metrics().num_cancelled == 1; }));
  }
}

// A request that waits in the socket hides the end of the connection from a read.
TEST(HttpServer, SeesThatAClientLeftThoughItsNextRequestIsThere) {
  TextEngine text(LongText());
  HoldAfterSomeTokens(text.runner);
  Loopback loopback(text.engine.get());
  Client client(loopback.port());
  client.Post("/v1/chat/completions", kAskStreamed);
  client.ReadUntil("word");
  client.Get("/health");
  client.Close();
  EXPECT_TRUE(Eventually([&] { return text.engine->metrics().num_cancelled == 1; }));
}

// C109: a queued client that left stopped someone else's answer.
TEST(HttpServer, KeepsAnAnswerWhenAnotherClientLeaves) {
  FakeRunnerOptions one_at_a_time;
  one_at_a_time.max_step_sequences = 1;
  LongTextEngine text(one_at_a_time, OptionsFor(one_at_a_time));
  Loopback loopback(text.engine.get());
  Client stays(loopback.port());
  stays.Post("/v1/chat/completions", kAsk);
  text.runner->WaitUntilHeld();
  {
    Client leaves(loopback.port());
    leaves.Post("/v1/chat/completions", kAsk);
    ASSERT_TRUE(Eventually([&] { return text.engine->metrics().num_submitted == 2; }));
  }
  text.runner->Release();
  EXPECT_EQ(stays.Status(), 200);
  EXPECT_NE(stays.ReadUntil("finish_reason").find(LongText()), std::string::npos);
}

// C051: silence during a long prompt.
TEST(HttpServer, SendsCommentsIntoASilentStream) {
  TextEngine text("late");
  text.runner->holds = [](const BatchPlan&) { return true; };
  Loopback loopback(text.engine.get(), {.keep_alive_interval = milliseconds(150)});
  Client client(loopback.port());
  client.Post("/v1/chat/completions", kAskStreamed);
  const std::string silence = client.ReadUntil(": keep-alive\n\n");
  EXPECT_NE(silence.find(": keep-alive\n\n"), std::string::npos);
  EXPECT_EQ(silence.find("\"content\":\"l"), std::string::npos);
  text.runner->Release();
  EXPECT_NE(client.ReadUntil("[DONE]").find("\"content\":\"l"), std::string::npos);
}

// C051: an error during the prompt left the client without an answer.
TEST(HttpServer, EndsAStreamWithTheErrorThatEndedTheAnswer) {
  TextEngine text("never");
  text.runner->before_step = [](const BatchPlan&) { return Status::Internal("it broke"); };
  Loopback loopback(text.engine.get());
  Client streamed(loopback.port()), plain(loopback.port());
  streamed.Post("/v1/chat/completions", kAskStreamed);
  const std::string received = streamed.ReadUntil("it broke");
  EXPECT_NE(received.find("data: {\"error\":"), std::string::npos);
  EXPECT_NE(received.find("it broke"), std::string::npos);
  EXPECT_EQ(received.find("[DONE]"), std::string::npos);
  plain.Post("/v1/chat/completions", kAsk);
  EXPECT_EQ(plain.Status(), 500);
}

TEST(HttpServer, AsksForPatienceWhenTheQueueIsFull) {
  EngineOptions options;
  options.max_pending_sequences = 1;
  LongTextEngine text({}, options);
  Loopback loopback(text.engine.get());
  Client first(loopback.port()), second(loopback.port());
  first.Post("/v1/chat/completions", kAskStreamed);
  first.ReadUntil("word");
  second.Post("/v1/chat/completions", kAsk);
  EXPECT_EQ(second.Status(), 429);
  EXPECT_NE(second.ReadUntil("}}").find("Retry-After: "), std::string::npos);
}

TEST(HttpServer, WantsAKeyWhereThereAreKeys) {
  TextEngine text("ok");
  ApiHandlerOptions options;
  options.keys = ApiKeys::Parse("bo secret", "keys").value();
  std::string line;
  options.log_line = [&line](const std::string& one) { line = one; };
  Loopback loopback(text.engine.get(), {}, options);
  for (const char* path : {"/v1/chat/completions", "/v1/messages"}) {
    Client without(loopback.port());
    without.Post(path, kAsk);
    EXPECT_EQ(without.Status(), 401);
    EXPECT_NE(without.ReadUntil("}}").find("authentication_error"), std::string::npos);
  }
  Client health(loopback.port()), with(loopback.port());
  health.Get("/health");
  EXPECT_EQ(health.Status(), 200);
  with.Post("/v1/chat/completions", kAsk, "Authorization: Bearer secret\r\n");
  EXPECT_EQ(with.Status(), 200);
  with.ReadUntil("completion_tokens");
  loopback.Stop();
  EXPECT_NE(line.find("\"key\":\"bo\""), std::string::npos);
  EXPECT_EQ(line.find("secret"), std::string::npos);
}

TEST(HttpServer, HoldsAClientToItsRate) {
  TextEngine text("ok");
  ApiHandlerOptions options;
  options.requests_per_minute = 2;
  Loopback loopback(text.engine.get(), {}, options);
  std::vector<int> statuses;
  for (int i = 0; i < 3; ++i) {
    Client client(loopback.port());
    client.Post("/v1/chat/completions", kAsk);
    statuses.push_back(client.Status());
  }
  EXPECT_EQ(statuses, (std::vector<int>{200, 200, 429}));
  Client health(loopback.port());
  health.Get("/health");
  EXPECT_EQ(health.Status(), 200) << "asking how it is costs nothing";
}

TEST(HttpServer, LetsPagesOfAllowedOriginsAsk) {
  ApiHandlerOptions options;
  options.cors_origins = {"https://a.example"};
  Loopback loopback(nullptr, {}, options);
  Client client(loopback.port());
  client.Send(
      "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\n"
      "Access-Control-Request-Method: POST\r\n\r\n");
  EXPECT_EQ(client.Status(), 204);
  EXPECT_NE(client.ReadUntil("\r\n\r\n").find("Access-Control-Allow-Origin: https://a.example"),
            std::string::npos);
}

// C132: SIGTERM did not end the server while a stream was open.
TEST(HttpServer, DrainsWhatIsRunningAndThenInterruptsIt) {
  TextEngine text(LongText());
  HoldAfterSomeTokens(text.runner);
  Loopback loopback(text.engine.get());
  Client idle(loopback.port()), streamed(loopback.port());
  idle.Get("/health");
  idle.ReadUntil("ready");
  streamed.Post("/v1/chat/completions", kAskStreamed);
  streamed.ReadUntil("word");
  loopback.handler.SetDraining();
  loopback.server->Drain(milliseconds(1000));
  Client late(loopback.port());
  late.Post("/v1/chat/completions", kAsk);
  EXPECT_EQ(late.Status(), 503);
  idle.ReadAll();
  EXPECT_TRUE(idle.is_closed());
  EXPECT_NE(streamed.ReadAll().find("shutting down"), std::string::npos);
  loopback.Join();
}

TEST(HttpServer, LetsARunningAnswerEndBeforeItStops) {
  TextEngine text("A short answer.");
  text.runner->holds = [](const BatchPlan&) { return true; };
  Loopback loopback(text.engine.get());
  Client client(loopback.port());
  client.Post("/v1/chat/completions", kAskStreamed);
  client.ReadUntil("role");
  loopback.handler.SetDraining();
  loopback.server->Drain(std::chrono::minutes(1));
  text.runner->Release();
  EXPECT_NE(client.ReadAll().find("[DONE]"), std::string::npos);
  loopback.Join();
}

// C121.
TEST(HttpServer, NamesAPortThatIsTaken) {
  Loopback loopback(nullptr);
  const auto second = HttpServer::Listen(
      {.port = loopback.port(), .tls_certificate = "", .tls_key = "", .limits = {}},
      &loopback.handler);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find(std::to_string(loopback.port())), std::string::npos);
}

TEST(HttpServer, NamesACertificateThatIsNone) {
  Loopback loopback(nullptr);
  const auto second = HttpServer::Listen(
      {.port = 0, .tls_certificate = "/nowhere.pem", .tls_key = "/nowhere.key", .limits = {}},
      &loopback.handler);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("/nowhere.pem"), std::string::npos);
}

// Many at once, some of which leave at any time: for the thread sanitizer.
TEST(HttpServer, ServesManyOfWhichSomeLeave) {
  TextEngine text("Some words for everybody.");
  Loopback loopback(text.engine.get());
  std::atomic<int> num_whole{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 6; ++i) {
        Client client(loopback.port());
        client.Post("/v1/chat/completions", i % 2 == 0 ? kAsk : kAskStreamed);
        if ((t + i) % 3 == 0) continue;  // leaves
        num_whole +=
            client.ReadUntil(i % 2 == 0 ? "finish_reason\":\"stop" : "[DONE]").find("200 OK") !=
            std::string::npos;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_whole, 32);
  EXPECT_TRUE(Eventually([&] { return loopback.server->num_connections() == 0; }));
  const MetricsSnapshot metrics = text.engine->metrics();
  EXPECT_EQ(metrics.num_failed, 0);
}

}  // namespace
}  // namespace hadal
