#include "text/chat_layout.h"

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "base/json.h"

namespace hadal {
namespace {

// The words by which the published templates are told apart, without the rest of them.
constexpr const char* kV2Template =
    "{{ bos_token }}{% for message in messages %}{{ 'User: ' + message['content'] + '\\n\\n' }}"
    "{{ 'Assistant: ' + message['content'] + eos_token }}{{ 'Assistant:' }}";
constexpr const char* kV25Template =
    "{% set ns.system_prompt = message['content'] %}{{'<｜User｜>'}}{{'<｜Assistant｜>'}}";
constexpr const char* kV3Template =
    "{%- if ns.is_first_sp %}{{'<｜User｜>'}}{{'<｜Assistant｜>' + message['content']}}";
constexpr const char* kV30324Template =
    "is_first_sp{%- set ns.is_last_user = true -%}{{'<｜User｜>' + message['content'] + "
    "'<｜Assistant｜>'}}";
constexpr const char* kR1Template =
    "is_first_sp{{'<｜User｜>'}}{% set content = content.split('</think>')[-1] %}"
    "{{'<｜Assistant｜><think>\\n'}}";
constexpr const char* kR10528Template =
    "is_first_sp{%- set ns.is_last_user = true -%}{{'<｜User｜>' + content + '<｜Assistant｜>'}}"
    "{% set content = content.split('</think>')[-1] %}";
constexpr const char* kV31Template =
    "{% if not thinking is defined %}is_first_sp is_last_user{{'<｜User｜>'}}"
    "{{'<｜Assistant｜></think>'}}{{'<think>'}}";

void ExpectChoice(std::string_view chat_template, std::string_view model_type,
                  bool has_think_tokens, ChatLayout layout) {
  const ChatLayoutChoice choice = ChooseChatLayout(chat_template, model_type, has_think_tokens);
  EXPECT_EQ(ChatLayoutName(choice.layout), ChatLayoutName(layout));
  EXPECT_FALSE(choice.reason.empty());
}

TEST(ChatLayout, KnowsEveryNameBothWays) {
  for (const char* name :
       {"v2", "v2.5", "v3", "v3-0324", "r1", "r1-0528", "v3.1", "v3.2-exp", "v3.2"}) {
    const std::optional<ChatLayout> layout = FindChatLayout(name);
    ASSERT_TRUE(layout.has_value()) << name;
    EXPECT_EQ(ChatLayoutName(*layout), name);
  }
  EXPECT_FALSE(FindChatLayout("V3").has_value());
  EXPECT_FALSE(FindChatLayout("").has_value());
}

TEST(ChatLayout, IsChosenByTheTemplate) {
  ExpectChoice(kV2Template, "deepseek_v2", false, ChatLayout::kV2);
  ExpectChoice(kV25Template, "deepseek_v2", false, ChatLayout::kV25);
  ExpectChoice(kV3Template, "deepseek_v3", false, ChatLayout::kV3);
  ExpectChoice(kV30324Template, "deepseek_v3", false, ChatLayout::kV30324);
  ExpectChoice(kR1Template, "deepseek_v3", true, ChatLayout::kR1);
  ExpectChoice(kR10528Template, "deepseek_v3", true, ChatLayout::kR10528);
  ExpectChoice(kV31Template, "deepseek_v3", true, ChatLayout::kV31);
  ExpectChoice(kV31Template, "deepseek_v32", true, ChatLayout::kV32Exp);
  ExpectChoice("<｜DSML｜invoke", "deepseek_v32", true, ChatLayout::kV32);
}

TEST(ChatLayout, IsChosenByModelTypeAndVocabularyWithoutATemplate) {
  ExpectChoice("", "deepseek_v2", false, ChatLayout::kV2);
  ExpectChoice("", "deepseek_v3", false, ChatLayout::kV3);
  ExpectChoice("", "deepseek_v3", true, ChatLayout::kV31);
  ExpectChoice("", "deepseek_v32", true, ChatLayout::kV32);
  ExpectChoice("", "", true, ChatLayout::kV31);
  ExpectChoice("", "", false, ChatLayout::kV3);
  EXPECT_EQ(ChooseChatLayout("", "deepseek_v32", true).reason,
            "there is no chat template and model_type is deepseek_v32");
}

TEST(ChatLayout, SaysWhenATemplateIsNotKnown) {
  const ChatLayoutChoice choice = ChooseChatLayout("<|im_start|>", "deepseek_v3", false);
  EXPECT_EQ(choice.layout, ChatLayout::kV3);
  EXPECT_EQ(
      choice.reason,
      "the chat template is none that is known and the vocabulary has no tokens for thinking");
}

TEST(ChatLayout, OfTheBundledModelIsV31) {
  std::ifstream file(HADAL_SOURCE_DIR "/models/tiny/tokenizer_config.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Json config = ParseJson(text, "tokenizer_config.json").value();
  ExpectChoice(config.at("chat_template").get<std::string>(), "deepseek_v3", true,
               ChatLayout::kV31);
}

}  // namespace
}  // namespace hadal
