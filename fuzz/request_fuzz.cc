// Bodies of requests, as every route that takes one reads them: an error that says what is wrong,
// or a request that the engine could be asked. Seeds: tests/golden/server/raw_bodies.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "base/utf8.h"
#include "server/chat_request.h"
#include "server/completion_request.h"
#include "server/messages_request.h"
#include "server/responses_request.h"
#include "server/text_api.h"
#include "text/chat_template.h"
#include "text/python_json.h"

namespace {

hadal::ApiModel MakeModel() {
  using hadal::Tokenizer;
  static const std::unique_ptr<Tokenizer> tokenizer =
      Tokenizer::Load(HADAL_SOURCE_DIR "/models/tiny").value();
  hadal::ApiModel model;
  model.names = {"tiny"};
  model.layout = hadal::ChatLayout::kV31;
  model.num_tokens = tokenizer->vocab_size();
  model.max_context_tokens = 2048;
  model.tokenizer = tokenizer.get();
  return model;
}

void Check(bool holds) {
  if (!holds) std::abort();
}

void CheckError(const hadal::Status& status) {
  Check(!status.message().empty());
  Check(status.message().find('\n') == std::string::npos);
  Check(hadal::IsValidUtf8(status.message()));
}

void CheckCall(const hadal::Result<hadal::ApiCall>& call, const hadal::ApiModel& model) {
  if (!call.ok()) return CheckError(call.status());
  Check(!call->requests.empty());
  for (const hadal::GenerationRequest& request : call->requests) {
    const hadal::Status status = hadal::CheckGenerationRequest(request, model.num_tokens);
    if (!status.ok()) CheckError(status);
    if (const auto* talk = std::get_if<hadal::Conversation>(&request.input)) {
      for (const auto layout : {model.layout, hadal::ChatLayout::kV32, hadal::ChatLayout::kR1}) {
        const auto prompt = hadal::RenderChat(layout, *talk);
        if (!prompt.ok()) CheckError(prompt.status());
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const hadal::ApiModel model = MakeModel();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const hadal::Result<hadal::Json> body = hadal::ParseJsonKeepingIntegers(text, "body");
  if (!body.ok()) {
    CheckError(body.status());
    return 0;
  }
  if (!body->is_object()) return 0;  // refused before any route sees it
  CheckCall(hadal::ParseChatRequest(body.value(), model), model);
  CheckCall(hadal::ParseCompletionRequest(body.value(), model), model);
  CheckCall(hadal::ParseMessagesRequest(body.value(), model), model);
  CheckCall(hadal::ParseResponsesRequest(body.value(), model), model);
  for (const auto compute : {&hadal::TokenizeText, &hadal::DetokenizeIds, &hadal::RenderRequest,
                             &hadal::CountMessagesTokens}) {
    const hadal::Result<hadal::Json> reply = compute(body.value(), model);
    if (!reply.ok()) CheckError(reply.status());
  }
  return 0;
}
