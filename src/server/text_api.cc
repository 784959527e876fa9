#include "server/text_api.h"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/utf8.h"
#include "server/chat_request.h"
#include "server/field_reader.h"
#include "text/chat_template.h"

namespace hadal {
namespace {

Status CheckTokenizer(const ApiModel& model) {
  if (model.tokenizer != nullptr) return Status::Ok();
  return Status::Unsupported("this model has no tokenizer.json, so it takes token ids only");
}

Json IdsJson(const std::vector<TokenId>& ids) {
  Json list = Json::array();
  for (const TokenId id : ids) list.push_back(id.value);
  return list;
}

struct RenderedRequest {
  std::string prompt;
  std::vector<TokenId> tokens;
};

Result<RenderedRequest> Render(const Json& body, const ApiModel& model) {
  ASSIGN_OR_RETURN(const ApiCall call, ParseChatRequest(body, model));
  const GenerationRequest& request = call.requests[0];
  ASSIGN_OR_RETURN(Prompt prompt, RenderChat(model.layout, std::get<Conversation>(request.input)));
  prompt.insert(prompt.end(), request.opening.begin(), request.opening.end());
  return RenderedRequest{PromptText(prompt), model.tokenizer->Encode(prompt)};
}

}  // namespace

Result<Json> TokenizeText(const Json& body, const ApiModel& model) {
  RETURN_IF_ERROR(CheckTokenizer(model));
  const FieldReader fields(body);
  bool adds_begin = false, knows_specials = false, wants_texts = false;
  RETURN_IF_ERROR(fields.Flag("add_special_tokens", &adds_begin));
  RETURN_IF_ERROR(fields.Flag("specials", &knows_specials));
  RETURN_IF_ERROR(fields.Flag("return_token_strs", &wants_texts));
  std::vector<TokenId> ids;
  if (fields.Find("messages") != nullptr) {
    ASSIGN_OR_RETURN(RenderedRequest rendered, Render(body, model));
    ids = std::move(rendered.tokens);
  } else {
    const char* key = fields.Find("text") != nullptr ? "text" : "prompt";
    std::string text;
    RETURN_IF_ERROR(fields.Text(key, &text));
    if (fields.Find(key) == nullptr) return fields.Mismatch("prompt", "a string");
    ids =
        knows_specials ? model.tokenizer->EncodeWithSpecials(text) : model.tokenizer->Encode(text);
    if (adds_begin && model.tokenizer->bos()) ids.insert(ids.begin(), *model.tokenizer->bos());
  }
  Json reply = {
      {"tokens", IdsJson(ids)}, {"count", ids.size()}, {"max_model_len", model.max_context_tokens}};
  if (wants_texts) {
    Json texts = Json::array();
    for (const TokenId id : ids) texts.push_back(RepairUtf8(model.tokenizer->TokenBytes(id)));
    reply["token_strs"] = std::move(texts);
  }
  return reply;
}

Result<Json> DetokenizeIds(const Json& body, const ApiModel& model) {
  RETURN_IF_ERROR(CheckTokenizer(model));
  const FieldReader fields(body);
  ASSIGN_OR_RETURN(const Json* list, fields.List("tokens"));
  if (list == nullptr) return fields.Mismatch("tokens", "a list of token ids");
  std::vector<TokenId> ids;
  for (size_t i = 0; i < list->size(); ++i) {
    const Json& entry = (*list)[i];
    if (!entry.is_number_integer() || entry < 0 || entry >= model.num_tokens) {
      return FieldMismatch(fmt::format("tokens[{}]", i),
                           fmt::format("a token id from 0 to {}", model.num_tokens - 1), &entry);
    }
    ids.push_back({entry.get<int32_t>()});
  }
  const std::string text = RepairUtf8(model.tokenizer->Decode(ids));
  return Json{{"prompt", text}, {"text", text}};
}

Result<Json> RenderRequest(const Json& body, const ApiModel& model) {
  RETURN_IF_ERROR(CheckTokenizer(model));
  ASSIGN_OR_RETURN(const RenderedRequest rendered, Render(body, model));
  return Json{{"prompt", rendered.prompt},
              {"tokens", IdsJson(rendered.tokens)},
              {"count", rendered.tokens.size()}};
}

}  // namespace hadal
