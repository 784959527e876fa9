// JSON text -> conversation -> prompt in every layout. Whatever the client sends, the prompt begins
// with the begin token and no text of a message is taken for markup.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "text/chat_message.h"
#include "text/chat_template.h"
#include "text/python_json.h"

namespace {

constexpr hadal::ChatLayout kLayouts[] = {hadal::ChatLayout::kV2,     hadal::ChatLayout::kV25,
                                          hadal::ChatLayout::kV3,     hadal::ChatLayout::kR1,
                                          hadal::ChatLayout::kV30324, hadal::ChatLayout::kR10528,
                                          hadal::ChatLayout::kV31,    hadal::ChatLayout::kV32};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const hadal::Result<hadal::Json> value = hadal::ParseJsonKeepingIntegers(text, "input");
  if (!value.ok()) return 0;
  // What is spelled once is spelled the same again.
  const std::string spelled = hadal::DumpPythonJson(*value);
  const hadal::Result<hadal::Json> again = hadal::ParseJsonKeepingIntegers(spelled, "spelled");
  HADAL_CHECK(again.ok());
  HADAL_CHECK(hadal::DumpPythonJson(*again) == spelled);

  const hadal::Result<hadal::Conversation> conversation = hadal::ParseConversation(*value, "input");
  if (!conversation.ok()) return 0;
  for (const hadal::ChatLayout layout : kLayouts) {
    const hadal::Result<hadal::Prompt> prompt = hadal::RenderChat(layout, *conversation);
    if (!prompt.ok()) continue;
    HADAL_CHECK(!prompt->empty() && prompt->front().is_markup);
    hadal::StartsInReasoning(layout, *prompt);
  }
  return 0;
}
