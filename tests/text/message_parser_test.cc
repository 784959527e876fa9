#include "text/message_parser.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "tests/support/linear_time.h"
#include "tests/text/golden_chat.h"
#include "text/chat_template.h"

namespace hadal {
namespace {

using Pieces = std::vector<std::string>;
using Kind = MessageDelta::Kind;

struct Parsed {
  ParsedMessage message;
  std::vector<MessageDelta> deltas;
};

std::string Shown(const ParsedMessage& message) {
  std::string text = "reasoning: " + message.reasoning + "\ncontent: " + message.content;
  for (const ToolCall& call : message.tool_calls) {
    text += "\ncall: " + call.name + " " + call.arguments;
  }
  return text;
}

// What a reader of the deltas alone makes of them.
ParsedMessage Joined(const std::vector<MessageDelta>& deltas) {
  ParsedMessage message;
  for (const MessageDelta& delta : deltas) {
    if (delta.kind == Kind::kReasoning) {
      message.reasoning += delta.text;
    } else if (delta.kind == Kind::kContent) {
      message.content += delta.text;
    } else if (delta.kind == Kind::kToolCallStart) {
      EXPECT_EQ(delta.tool_call_idx, static_cast<int>(message.tool_calls.size()));
      message.tool_calls.emplace_back();
      message.tool_calls.back().name = delta.text;
    } else {
      EXPECT_EQ(delta.tool_call_idx, static_cast<int>(message.tool_calls.size()) - 1);
      if (message.tool_calls.empty()) break;
      message.tool_calls.back().arguments += delta.text;
    }
  }
  return message;
}

Parsed Parse(ChatLayout layout, bool starts_in_reasoning, const Pieces& pieces,
             bool was_cut = false) {
  MessageParser parser(layout, starts_in_reasoning);
  Parsed parsed;
  for (const std::string& piece : pieces) parser.Push(piece, &parsed.deltas);
  parser.Finish(was_cut, &parsed.deltas);
  parsed.message = parser.message();
  EXPECT_EQ(Shown(Joined(parsed.deltas)), Shown(parsed.message));
  for (const MessageDelta& delta : parsed.deltas) EXPECT_FALSE(delta.text.empty());
  return parsed;
}

// The text as one piece, after checking that every other cut gives the same.
ParsedMessage ParseAtEveryCut(ChatLayout layout, bool starts_in_reasoning, const std::string& text,
                              bool was_cut = false) {
  const ParsedMessage whole = Parse(layout, starts_in_reasoning, {text}, was_cut).message;
  const std::string expected = Shown(whole);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const Pieces halves = {text.substr(0, cut), text.substr(cut)};
    EXPECT_EQ(Shown(Parse(layout, starts_in_reasoning, halves, was_cut).message), expected)
        << "cut at byte " << cut;
  }
  Pieces bytes, characters;
  for (size_t i = 0; i < text.size(); ++i) bytes.push_back(text.substr(i, 1));
  for (size_t i = 0; i < text.size();) {
    const auto length =
        static_cast<size_t>(DecodeCodePoint(std::string_view(text).substr(i)).length);
    characters.push_back(text.substr(i, length));
    i += length;
  }
  EXPECT_EQ(Shown(Parse(layout, starts_in_reasoning, bytes, was_cut).message), expected);
  const Parsed by_character = Parse(layout, starts_in_reasoning, characters, was_cut);
  EXPECT_EQ(Shown(by_character.message), expected);
  for (const MessageDelta& delta : by_character.deltas) {
    EXPECT_TRUE(IsValidUtf8(delta.text) || !IsValidUtf8(text));
  }
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    Pieces pieces;
    for (size_t i = 0; i < text.size();) {
      const size_t length = 1 + random() % 40;
      pieces.push_back(text.substr(i, length));
      i += length;
    }
    EXPECT_EQ(Shown(Parse(layout, starts_in_reasoning, pieces, was_cut).message), expected)
        << "round " << round;
  }
  return whole;
}

void ExpectCalls(const std::vector<ToolCall>& calls, const Json& expected) {
  ASSERT_EQ(calls.size(), expected.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].name, expected[i].at("name").get<std::string>());
    Result<Json> arguments = ParseJsonKeepingIntegers(calls[i].arguments, "arguments");
    ASSERT_TRUE(arguments.ok()) << calls[i].arguments;
    // Dumped, because the order of the arguments counts.
    EXPECT_EQ(DumpPythonJson(*arguments), DumpPythonJson(expected[i].at("arguments")));
  }
}

// C014, C020, C031.
TEST(MessageParser, GivesWhatTheV32EncoderParsesAtEveryCut) {
  const std::vector<Json> lines = ReadGoldenLines("parse_v32.jsonl");
  EXPECT_EQ(lines.size(), 10u);
  for (const Json& line : lines) {
    SCOPED_TRACE(line.at("text").get<std::string>());
    const ParsedMessage message = ParseAtEveryCut(ChatLayout::kV32, line.at("starts_in_reasoning"),
                                                  line.at("text").get<std::string>());
    const Json& expected = line.at("expect");
    EXPECT_EQ(message.reasoning, expected.at("reasoning").get<std::string>());
    EXPECT_EQ(message.content, expected.at("content").get<std::string>());
    ExpectCalls(message.tool_calls, expected.at("tool_calls"));
  }
}

std::string Trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \n") + 1 - begin);
}

// The cases of V4 are run in V3.2's spelling: the parts that they are about are the same.
std::pair<ChatLayout, Pieces> LayoutAndPieces(const Json& one) {
  const std::string family = one.at("family");
  Pieces pieces = one.at("chunks");
  if (family == "v4") {
    std::string text;
    for (const std::string& piece : pieces) text += piece;
    for (size_t at = 0; (at = text.find("DSML｜tool_calls", at)) != std::string::npos; ++at) {
      text.replace(at, std::string("DSML｜tool_calls").size(), "DSML｜function_calls");
    }
    pieces.clear();
    for (size_t i = 0; i < text.size(); i += 5) pieces.push_back(text.substr(i, 5));
    return {ChatLayout::kV32, pieces};
  }
  if (family == "v32") return {ChatLayout::kV32, pieces};
  if (family == "v31") return {ChatLayout::kV31, pieces};
  return {family == "r1" ? ChatLayout::kR1 : ChatLayout::kV3, pieces};
}

// C017 to C032 by their files.
TEST(MessageParser, GivesTheStreamCasesAtEveryCut) {
  const Json cases = ReadGoldenJson("stream_cases.json").at("cases");
  EXPECT_EQ(cases.size(), 19u);
  for (const Json& one : cases) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    const auto [layout, pieces] = LayoutAndPieces(one);
    const bool starts = one.at("starts_in_reasoning"), was_cut = one.value("cut_by_length", false);
    const Parsed streamed = Parse(layout, starts, pieces, was_cut);
    std::string text;
    for (const std::string& piece : pieces) text += piece;
    const ParsedMessage message = ParseAtEveryCut(layout, starts, text, was_cut);
    EXPECT_EQ(Shown(streamed.message), Shown(message));
    const Json& expected = one.at("expect");
    if (!expected.at("reasoning").is_null()) {
      EXPECT_EQ(message.reasoning, expected.at("reasoning").get<std::string>());
    }
    const bool trims = one.value("content_trim", false);
    EXPECT_EQ(trims ? Trimmed(message.content) : message.content,
              expected.at("content").get<std::string>());
    if (!one.value("allow_partial_call", false)) {
      ExpectCalls(message.tool_calls, expected.at("tool_calls"));
    }
    EXPECT_GE(std::count_if(
                  streamed.deltas.begin(), streamed.deltas.end(),
                  [](const MessageDelta& delta) { return delta.kind == Kind::kToolCallArguments; }),
              one.value("min_argument_deltas", 0));
  }
}

constexpr const char* kV3Call =
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_code\n```json\n"
    "{\"code\": 123}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>";
constexpr const char* kV31Call =
    "I will look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{\"city\": "
    "\"上海\"}"
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜>";

// C015: V3.1 calls not recognised.
TEST(MessageParser, LeavesTheCallsOfAnotherFamilyAsText) {
  const std::pair<ChatLayout, std::string> foreign[] = {
      {ChatLayout::kV31, kV3Call}, {ChatLayout::kV3, kV31Call},  {ChatLayout::kR1, kV31Call},
      {ChatLayout::kV32, kV3Call}, {ChatLayout::kV32, kV31Call}, {ChatLayout::kV2, kV31Call}};
  for (const auto& [layout, text] : foreign) {
    const ParsedMessage message = ParseAtEveryCut(layout, false, text);
    EXPECT_EQ(message.content, text) << ChatLayoutName(layout);
    EXPECT_TRUE(message.tool_calls.empty()) << ChatLayoutName(layout);
  }
}

// C014: V3.2 tool calls come back as plain text.
TEST(MessageParser, ReadsBackTheCallsThatThePromptWrites) {
  Conversation conversation = ConversationOf(R"({"messages": [
      {"role": "user", "content": "Q"},
      {"role": "assistant", "content": "Let me see.", "reasoning_content": "Hm.", "tool_calls": [
        {"name": "f", "arguments": "{\"s\": \"a \\\"b\\\"\\n<c>\", \"n\": [1, {\"k\": null}]}"},
        {"name": "now", "arguments": "{}"}]}],
      "options": {"add_generation_prompt": true, "thinking": true}})");
  Conversation question = conversation;
  question.messages.pop_back();
  conversation.options.add_generation_prompt = false;
  const std::string_view end = "<｜end▁of▁sentence｜>";
  for (ChatLayout layout : {ChatLayout::kV25, ChatLayout::kV30324, ChatLayout::kV31,
                            ChatLayout::kV32Exp, ChatLayout::kV32}) {
    question.options.thinking = layout == ChatLayout::kV32;
    const Prompt prompt = RenderChat(layout, question).value();
    std::string text = PromptText(RenderChat(layout, conversation).value());
    ASSERT_TRUE(text.starts_with(PromptText(prompt))) << ChatLayoutName(layout);
    ASSERT_TRUE(text.ends_with(end));
    text = text.substr(PromptText(prompt).size());
    text.resize(text.size() - end.size());
    const ParsedMessage message = ParseAtEveryCut(layout, StartsInReasoning(layout, prompt), text);
    EXPECT_EQ(message.content, "Let me see.") << ChatLayoutName(layout);
    ASSERT_EQ(message.tool_calls.size(), 2u) << ChatLayoutName(layout);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(message.tool_calls[i].name, conversation.messages[1].tool_calls[i].name);
      EXPECT_EQ(message.tool_calls[i].arguments, conversation.messages[1].tool_calls[i].arguments);
    }
    EXPECT_EQ(message.reasoning, layout == ChatLayout::kV32 ? "Hm." : "");
  }
}

// C026: two streamed calls share one index; the name comes once and first.
TEST(MessageParser, NumbersTheCallsAndNamesEachOnce) {
  const std::string text =
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>a<｜tool▁sep｜>{\"x\": 1}<｜tool▁call▁end｜>"
      "<｜tool▁call▁begin｜>b<｜tool▁sep｜>{\"y\": 2}<｜tool▁call▁end｜><｜tool▁calls▁end｜>";
  Pieces pieces;
  for (size_t i = 0; i < text.size(); i += 3) pieces.push_back(text.substr(i, 3));
  std::vector<std::pair<Kind, int>> order;
  for (const MessageDelta& delta : Parse(ChatLayout::kV31, false, pieces).deltas) {
    const std::pair<Kind, int> step{delta.kind, delta.tool_call_idx};
    if (order.empty() || order.back() != step) order.push_back(step);
  }
  const std::vector<std::pair<Kind, int>> expected = {{Kind::kToolCallStart, 0},
                                                      {Kind::kToolCallArguments, 0},
                                                      {Kind::kToolCallStart, 1},
                                                      {Kind::kToolCallArguments, 1}};
  EXPECT_EQ(order, expected);
}

// C028: reply says tool_calls with an empty list.
TEST(MessageParser, KeepsAListWithoutACallAsText) {
  for (const std::string text :
       {"a<｜tool▁calls▁begin｜>", "a<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>b",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",
        "<｜tool▁calls▁begin｜> \n<｜tool▁calls▁begin｜>x",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜><｜tool▁sep｜>{}<｜tool▁call▁end｜>"}) {
    for (ChatLayout layout : {ChatLayout::kV3, ChatLayout::kV31}) {
      EXPECT_EQ(ParseAtEveryCut(layout, false, text).content, text);
    }
  }
  for (const std::string text :
       {"a\n\n<｜DSML｜function_calls>", "\n<｜DSML｜function_calls>\n</｜DSML｜function_calls>b",
        "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"\">",
        "\n\n<｜DSML｜function_calls>nothing\n\n", "<｜DSML｜invoke name=\"f\">"}) {
    EXPECT_EQ(ParseAtEveryCut(ChatLayout::kV32, false, text).content, text);
  }
}

TEST(MessageParser, FindsACallBehindAListWithoutOne) {
  const ParsedMessage message =
      ParseAtEveryCut(ChatLayout::kV3, false, std::string("<｜tool▁calls▁begin｜>no ") + kV3Call);
  EXPECT_EQ(message.content, "<｜tool▁calls▁begin｜>no ");
  ASSERT_EQ(message.tool_calls.size(), 1u);
  EXPECT_EQ(message.tool_calls[0].arguments, "{\"code\": 123}");
}

// C029: cut-off call reported as finished with broken JSON.
TEST(MessageParser, ShowsNoPieceOfAMarkerWhenTheTextWasCut) {
  const std::string v31 = kV31Call;
  const std::string v32 =
      "I will look.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"weather\">\n"
      "<｜DSML｜parameter name=\"city\" string=\"true\">上海</｜DSML｜parameter>\n"
      "<｜DSML｜parameter name=\"n\" string=\"false\">[12]</｜DSML｜parameter>\n"
      "</｜DSML｜invoke>\n</｜DSML｜function_calls>";
  const std::string v3 = std::string("I will look.") + kV3Call;
  const std::pair<ChatLayout, std::string> texts[] = {
      {ChatLayout::kV31, v31}, {ChatLayout::kV3, v3}, {ChatLayout::kV32, v32}};
  for (const auto& [layout, text] : texts) {
    const ParsedMessage whole = Parse(layout, false, {text}).message;
    ASSERT_EQ(whole.tool_calls.size(), 1u);
    for (size_t length = 13; length < text.size(); ++length) {
      if (!IsValidUtf8(text.substr(0, length))) continue;
      const ParsedMessage message =
          Parse(layout, false, {text.substr(0, length)}, /*was_cut=*/true).message;
      EXPECT_EQ(Trimmed(message.content.substr(0, 12)), "I will look.");
      EXPECT_LE(message.content.size(), 15u) << length;  // at most line ends and "<"
      if (message.tool_calls.empty()) continue;
      EXPECT_EQ(message.tool_calls[0].name, whole.tool_calls[0].name);
      const std::string& arguments = message.tool_calls[0].arguments;
      EXPECT_EQ(arguments.find("｜"), std::string::npos) << arguments;
    }
  }
}

TEST(MessageParser, ClosesTheObjectWhenTheModelEndsItsTurnInsideACall) {
  const std::string begin = "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n";
  const auto arguments = [&](const std::string& rest) {
    return ParseAtEveryCut(ChatLayout::kV32, false, begin + rest).tool_calls.at(0).arguments;
  };
  EXPECT_EQ(arguments(""), "{}");
  EXPECT_EQ(arguments("<｜DSML｜parameter name=\"a\" string=\"true\">x\n</｜DSML"),
            "{\"a\": \"x\\n</｜DSML\"}");
  EXPECT_EQ(arguments("<｜DSML｜parameter name=\"a\" string=\"false\">[1"), "{\"a\": \"[1\"}");
  EXPECT_EQ(arguments("<｜DSML｜parameter name=\"a\" string=\"false\">1</｜DSML｜parameter>"),
            "{\"a\": 1}");
}

// C032: "007" becomes 7, or 5 becomes "5".
TEST(MessageParser, TakesTypesOfValuesFromTheirTags) {
  const auto arguments = [](const std::string& parameters) {
    return ParseAtEveryCut(ChatLayout::kV32, false,
                           "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n" + parameters +
                               "</｜DSML｜invoke>\n</｜DSML｜function_calls>")
        .tool_calls.at(0)
        .arguments;
  };
  const auto parameter = [](const std::string& head, const std::string& value) {
    return "<｜DSML｜parameter name=\"" + head + ">" + value + "</｜DSML｜parameter>\n";
  };
  EXPECT_EQ(arguments(parameter("a\" string=\"true\"", "007")), "{\"a\": \"007\"}");
  EXPECT_EQ(arguments(parameter("a\" string=\"false\"", "5")), "{\"a\": 5}");
  EXPECT_EQ(arguments(parameter("a\" string=\"false\"", "1e3")), "{\"a\": 1e3}");
  EXPECT_EQ(arguments(parameter("a\" string=\"true\"", "")), "{\"a\": \"\"}");
  // Not JSON, so it can only have been meant as text.
  EXPECT_EQ(arguments(parameter("a\" string=\"false\"", "007")), "{\"a\": \"007\"}");
  EXPECT_EQ(arguments(parameter("a\" string=\"false\"", "say \"hi\"")),
            "{\"a\": \"say \\\"hi\\\"\"}");
  EXPECT_EQ(arguments(parameter("a\"", "no attribute")), "{\"a\": \"no attribute\"}");
  EXPECT_EQ(arguments(parameter("k\"ey\" string=\"true\"", "v")), "{\"k\\\"ey\": \"v\"}");
  EXPECT_EQ(
      arguments(parameter("a\" string=\"true\"", "1") + "junk" +
                parameter("a\" string=\"true\"", "2") + parameter("b\" string=\"false\"", "3")),
      "{\"a\": \"1\", \"b\": 3}");
}

TEST(MessageParser, ReadsCallsWithoutTheMarkersThatShouldCloseThem) {
  const ParsedMessage message = ParseAtEveryCut(
      ChatLayout::kV3, false,
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{}\n```"
      "<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n\n```\n<｜tool▁call▁end｜>\n"
      "<｜tool▁call▁begin｜>function<｜tool▁sep｜>h\n```json\n{\"x\": "
      "\"```\"}<｜tool▁calls▁end｜>");
  ASSERT_EQ(message.tool_calls.size(), 3u);
  EXPECT_EQ(message.tool_calls[0].arguments, "{}");
  EXPECT_EQ(message.tool_calls[1].arguments, "{}");
  EXPECT_EQ(message.tool_calls[2].arguments, "{\"x\": \"```\"}");
  EXPECT_EQ(message.content, "");
}

TEST(MessageParser, ShowsTextBehindTheCallsWithoutTheGap) {
  for (const auto& [layout, call] :
       {std::pair{ChatLayout::kV3, kV3Call}, std::pair{ChatLayout::kV31, kV31Call}}) {
    const std::string before = layout == ChatLayout::kV31 ? "I will look." : "";
    EXPECT_EQ(ParseAtEveryCut(layout, false, std::string(call) + " \n").content, before);
    EXPECT_EQ(ParseAtEveryCut(layout, false, std::string(call) + "\nDone.").content,
              before + "Done.");
  }
}

TEST(MessageParser, DropsTheLineEndsAroundTheTagsOfR1Only) {
  const std::string text = "<think>\nHm.\n</think>\n\nYes.\n";
  const ParsedMessage r1 = ParseAtEveryCut(ChatLayout::kR10528, false, text);
  EXPECT_EQ(r1.reasoning, "Hm.\n");
  EXPECT_EQ(r1.content, "Yes.\n");
  const ParsedMessage v31 = ParseAtEveryCut(ChatLayout::kV31, false, text);
  EXPECT_EQ(v31.reasoning, "\nHm.\n");
  EXPECT_EQ(v31.content, "\n\nYes.\n");
}

TEST(MessageParser, TakesThinkTagsAsTextWhereTheVersionHasNone) {
  const std::string text = "<think>a</think>b";
  for (ChatLayout layout :
       {ChatLayout::kV2, ChatLayout::kV25, ChatLayout::kV3, ChatLayout::kV30324}) {
    EXPECT_EQ(ParseAtEveryCut(layout, false, text).content, text);
  }
}

TEST(MessageParser, SaysWhetherItIsInReasoning) {
  MessageParser parser(ChatLayout::kV31, true);
  std::vector<MessageDelta> deltas;
  EXPECT_TRUE(parser.is_in_reasoning());
  parser.Push("Hm</thi", &deltas);
  EXPECT_TRUE(parser.is_in_reasoning());
  parser.Push("nk>", &deltas);
  EXPECT_FALSE(parser.is_in_reasoning());
}

TEST(MessageParser, SendsTextAsSoonAsItIsDecided) {
  MessageParser parser(ChatLayout::kV32, false);
  std::vector<MessageDelta> deltas;
  parser.Push("a <", &deltas);
  ASSERT_EQ(deltas.size(), 1u);
  EXPECT_EQ(deltas[0].text, "a ");
  parser.Push("｜DSML｜f\n", &deltas);
  ASSERT_EQ(deltas.size(), 2u);
  EXPECT_EQ(deltas[1].text, "<｜DSML｜f");
}

// Texts made of pieces of markup, which real models do not write.
TEST(MessageParser, DoesNotDependOnTheCutsOfRandomText) {
  const std::vector<std::string> atoms = {"<think>",
                                          "</think>",
                                          "\n",
                                          "\n\n",
                                          " ",
                                          "x",
                                          "{",
                                          "}",
                                          "\"",
                                          ">",
                                          "function",
                                          "f",
                                          "```json",
                                          "```",
                                          "\n```",
                                          "<｜tool▁calls▁begin｜>",
                                          "<｜tool▁calls▁end｜>",
                                          "<｜tool▁call▁begin｜>",
                                          "<｜tool▁call▁end｜>",
                                          "<｜tool▁sep｜>",
                                          "<｜DSML｜function_calls>",
                                          "</｜DSML｜function_calls>",
                                          "<｜DSML｜invoke name=\"f\">",
                                          "<｜DSML｜invoke name=\"",
                                          "</｜DSML｜invoke>",
                                          "<｜DSML｜parameter name=\"k\" string=\"true\">",
                                          "<｜DSML｜parameter name=\"n\" string=\"false\">",
                                          "<｜DSML｜parameter name=\"",
                                          "</｜DSML｜parameter>",
                                          "1",
                                          "<｜",
                                          "｜>"};
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    std::string text;
    for (size_t i = 1 + random() % 12; i > 0; --i) text += atoms[random() % atoms.size()];
    if (random() % 3 == 0) text.resize(text.size() - std::min<size_t>(text.size(), random() % 9));
    SCOPED_TRACE(text);
    for (ChatLayout layout :
         {ChatLayout::kV3, ChatLayout::kR1, ChatLayout::kV31, ChatLayout::kV32}) {
      ParseAtEveryCut(layout, round % 4 == 0, text, round % 2 == 0);
    }
    if (HasFailure()) return;
  }
}

// Every way of holding text back, for long.
TEST(MessageParser, TakesLinearTimeOnTextThatItMustHoldBack) {
  const std::string dsml = "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n";
  const std::string openings[] = {
      "",
      "<｜tool▁calls▁begin｜>",
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",
      dsml,
      dsml + "<｜DSML｜parameter name=\"",
      dsml + "<｜DSML｜parameter name=\"a\" string=\"false\">",
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{",
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n"};
  const std::string fillers[] = {
      "\n", "<", "a", "`", "[", "<｜tool▁calls▁begin｜>", "<｜DSML｜function_calls>\n"};
  const ChatLayout layouts[] = {ChatLayout::kV3, ChatLayout::kV31, ChatLayout::kV32};
  for (const std::string& opening : openings) {
    for (const std::string& filler : fillers) {
      const auto piece_by_piece = [&](int num_pieces) {
        for (const ChatLayout layout : layouts) {
          MessageParser parser(layout, false);
          std::vector<MessageDelta> deltas;
          parser.Push(opening, &deltas);
          for (int i = 0; i < num_pieces; ++i) parser.Push(filler, &deltas);
          parser.Finish(false, &deltas);
        }
      };
      EXPECT_TRUE(GrowsLinearly(piece_by_piece, 1000)) << opening << " and many " << filler;
    }
  }
  // Openings that lead nowhere, all of them at once.
  const std::string unfinished[] = {
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f",
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f",
      "<｜DSML｜function_calls><｜DSML｜invoke name=\"f", "<｜DSML｜parameter name=\"f"};
  for (const std::string& piece : unfinished) {
    const auto at_once = [&](int num_pieces) {
      std::string text = dsml;
      for (int i = 0; i < num_pieces; ++i) text += piece;
      for (const ChatLayout layout : layouts) Parse(layout, false, {text});
    };
    EXPECT_TRUE(GrowsLinearly(at_once, 1000)) << piece;
  }
}

}  // namespace
}  // namespace hadal
