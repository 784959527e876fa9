#include "server/chat_reply.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "server/completion_reply.h"
#include "server/messages_reply.h"
#include "server/responses_reply.h"

namespace hadal {
namespace {

using Kind = MessageDelta::Kind;

struct Piece {
  Kind kind;
  int call_idx;
  std::string text;
};

const std::vector<Piece> kAnswer = {
    {Kind::kReasoning, 0, "I think \"so\"."}, {Kind::kContent, 0, "Füße 你好 \xF0\x9F\x98\x80"},
    {Kind::kToolCallStart, 0, "first"},       {Kind::kToolCallArguments, 0, "{\"a\": [1, 2]}"},
    {Kind::kToolCallStart, 1, "second"},      {Kind::kToolCallArguments, 1, "{\"b\": \"\\\"x\"}"}};

ReplySetting Setting() {
  ReplySetting setting;
  setting.info = {.id = "req_00ff", .model = "m\"odel", .created_s = 7, .fingerprint = "fp_1"};
  setting.wants_usage = true;
  return setting;
}

ResponseHead Head() {
  ResponseHead head;
  head.prompt = {{1}, {2}, {3}};
  head.starts_in_reasoning = true;
  return head;
}

// The answer cut at random places (between characters), written by `writer`.
std::string Write(ReplyWriter* writer, uint64_t seed) {
  std::string out;
  writer->Begin(Head(), &out);
  ResponseChunk chunk;
  uint64_t draw = 0;
  for (const Piece& piece : kAnswer) {
    size_t begin = 0;
    while (begin < piece.text.size() || (begin == 0 && piece.text.empty())) {
      size_t end = begin + 1 + RandomBits(seed, draw++) % 9;
      if (seed == 0 || piece.kind == Kind::kToolCallStart) end = piece.text.size();
      end = std::min(end, piece.text.size());
      while (end < piece.text.size() && (piece.text[end] & 0xC0) == 0x80) ++end;
      chunk.AddPiece(0, piece.kind, piece.call_idx, piece.text.substr(begin, end - begin));
      begin = end;
      if (RandomBits(seed, draw++) % 2 == 0) continue;
      writer->Add(chunk, 0, &out);
      chunk.Clear();
    }
  }
  chunk.ends.push_back({.choice_idx = 0,
                        .finish = FinishReason::kToolCalls,
                        .error = "",
                        .stop_string = "",
                        .usage = {.prompt_tokens = 3, .cached_tokens = 2, .completion_tokens = 9},
                        .timings = {}});
  writer->Add(chunk, 0, &out);
  writer->End(&out);
  return out;
}

// The data of each event.
std::vector<std::string> Events(const std::string& stream) {
  std::vector<std::string> events;
  for (size_t place = 0; (place = stream.find("data: ", place)) != std::string::npos;) {
    const size_t end = stream.find("\n\n", place);
    events.push_back(stream.substr(place + 6, end - place - 6));
    place = end;
  }
  return events;
}

// A stream gives the same joined result as the plain reply, however it is cut.
TEST(ChatReply, StreamsWhatThePlainReplySays) {
  const Json plain = Json::parse(Write(MakePlainChatWriter(Setting()).get(), 0));
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<std::string> events =
        Events(Write(MakeStreamedChatWriter(Setting()).get(), seed));
    ASSERT_EQ(events.back(), "[DONE]");
    Json message = {{"role", nullptr}, {"content", ""}, {"reasoning_content", ""}};
    Json finish, usage;
    for (size_t i = 0; i + 1 < events.size(); ++i) {
      const Json chunk = Json::parse(events[i]);
      EXPECT_EQ(chunk["model"], "m\"odel");
      if (!chunk["usage"].is_null()) usage = chunk["usage"];
      for (const Json& choice : chunk["choices"]) {
        const Json& delta = choice["delta"];
        if (i == 0) message["role"] = delta["role"];
        for (const char* key : {"content", "reasoning_content"})
          if (delta.contains(key))
            message[key] = message[key].get<std::string>() + delta[key].get<std::string>();
        for (const Json& call : delta.value("tool_calls", Json::array())) {
          if (call.contains("id")) {
            EXPECT_EQ(call["index"], message.value("tool_calls", Json::array()).size());
            Json first = call;
            first.erase("index");
            message["tool_calls"].push_back(first);
            continue;
          }
          Json& text = message["tool_calls"][call["index"].get<int>()]["function"]["arguments"];
          text = text.get<std::string>() + call["function"]["arguments"].get<std::string>();
        }
        finish = choice["finish_reason"];
      }
    }
    const Json& expected = plain["choices"][0];
    for (const auto& [key, value] : expected["message"].items()) EXPECT_EQ(message[key], value);
    EXPECT_EQ(finish, expected["finish_reason"]);
    EXPECT_EQ(usage, plain["usage"]);
  }
}

TEST(ChatReply, KeepsArgumentsToTheByte) {
  const Json plain = Json::parse(Write(MakePlainChatWriter(Setting()).get(), 3));
  const Json& calls = plain["choices"][0]["message"]["tool_calls"];
  EXPECT_EQ(calls[0]["function"]["arguments"], kAnswer[3].text);
  EXPECT_EQ(calls[1]["function"]["arguments"], kAnswer[5].text);
  EXPECT_NE(calls[0]["id"], calls[1]["id"]);
}

TEST(ChatReply, CountsHitsAndMissesOfTheCache) {
  const Json usage = Json::parse(Write(MakePlainChatWriter(Setting()).get(), 0))["usage"];
  EXPECT_EQ(usage["prompt_tokens"], 3);
  EXPECT_EQ(usage["total_tokens"], 12);
  EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], 2);
  EXPECT_EQ(usage["prompt_cache_hit_tokens"], 2);
  EXPECT_EQ(usage["prompt_cache_miss_tokens"], 1);
}

TEST(MessagesReply, StreamsWhatThePlainReplySays) {
  const Json plain = Json::parse(Write(MakePlainMessagesWriter(Setting()).get(), 0));
  EXPECT_EQ(plain["usage"]["input_tokens"], 1) << "what the cache gave is counted apart";
  EXPECT_EQ(plain["usage"]["cache_read_input_tokens"], 2);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Json blocks = Json::array();
    std::string json;
    for (const std::string& data :
         Events(Write(MakeStreamedMessagesWriter(Setting()).get(), seed))) {
      const Json event = Json::parse(data);
      if (event["type"] == "content_block_start") {
        EXPECT_EQ(event["index"], blocks.size());
        blocks.push_back(event["content_block"]);
        json.clear();
      } else if (event["type"] == "content_block_delta") {
        for (const char* key : {"text", "thinking"}) {
          if (event["delta"].contains(key))
            blocks.back()[key] =
                blocks.back()[key].get<std::string>() + event["delta"][key].get<std::string>();
        }
        if (event["delta"].contains("partial_json"))
          json += event["delta"]["partial_json"].get<std::string>();
      } else if (event["type"] == "content_block_stop" && !json.empty()) {
        blocks.back()["input"] = Json::parse(json);
      }
    }
    EXPECT_EQ(blocks, plain["content"]);
  }
}

TEST(ResponsesReply, StreamsWhatThePlainReplySays) {
  const Json plain = Json::parse(Write(MakePlainResponsesWriter(Setting()).get(), 0));
  ASSERT_EQ(plain["output"].size(), 4u);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<std::string> events =
        Events(Write(MakeStreamedResponsesWriter(Setting()).get(), seed));
    Json texts = Json::object();
    for (size_t i = 0; i < events.size(); ++i) {
      const Json event = Json::parse(events[i]);
      EXPECT_EQ(event["sequence_number"], i);
      if (!event["type"].get<std::string>().ends_with(".delta")) continue;
      const std::string id = event["item_id"];
      texts[id] = texts.value(id, "") + event["delta"].get<std::string>();
    }
    const Json last = Json::parse(events.back());
    EXPECT_EQ(last["type"], "response.completed");
    EXPECT_EQ(last["response"], plain);
    for (const Json& item : plain["output"]) {
      EXPECT_EQ(texts[item["id"].get<std::string>()],
                item["type"] == "function_call" ? item["arguments"] : item["content"][0]["text"]);
    }
  }
}

TEST(CompletionReply, NumbersTheAnswersOfAllPromptsThrough) {
  ReplySetting setting = Setting();
  setting.num_choices = 4;
  setting.num_prompts = 2;
  setting.echoes = {"A", "B"};
  const auto writer = MakePlainCompletionWriter(setting);
  std::string out;
  writer->Begin(Head(), &out);
  for (int first_choice : {0, 2}) {
    ResponseChunk chunk;
    for (int i : {0, 1}) {
      chunk.AddPiece(i, Kind::kContent, 0,
                     std::string(1, static_cast<char>('0' + first_choice + i)));
      chunk.ends.push_back({.choice_idx = i,
                            .finish = FinishReason::kStop,
                            .error = "",
                            .stop_string = "",
                            .usage = {.prompt_tokens = 3, .completion_tokens = 1},
                            .timings = {}});
    }
    writer->Add(chunk, first_choice, &out);
  }
  writer->End(&out);
  const Json reply = Json::parse(out);
  const char* const expected[] = {"A0", "A1", "B2", "B3"};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(reply["choices"][i]["text"], expected[i]);
  EXPECT_EQ(reply["usage"]["prompt_tokens"], 6) << "each prompt counts once";
  EXPECT_EQ(reply["usage"]["completion_tokens"], 4);
}

}  // namespace
}  // namespace hadal
