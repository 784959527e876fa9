#include "server/completion_request.h"

#include <utility>

#include <fmt/format.h>

#include "server/field_reader.h"
#include "server/sampling_fields.h"
#include "text/chat_template.h"
#include "text/markers.h"

namespace hadal {
namespace {

constexpr size_t kMaxPrompts = 128;
constexpr int kMaxLogprobs = 20;
constexpr int kDefaultMaxTokens = 16;  // of this API, as documented

struct TextOrIds {
  bool is_text = true;
  std::string text;
  std::vector<TokenId> ids;
};

Result<std::vector<TokenId>> ReadIds(const Json& list, const std::string& path,
                                     const ApiModel& model) {
  std::vector<TokenId> ids;
  ids.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& entry = list[i];
    if (!entry.is_number_integer() || entry < 0 || entry >= model.num_tokens) {
      return FieldMismatch(fmt::format("{}[{}]", path, i),
                           fmt::format("a token id from 0 to {}", model.num_tokens - 1), &entry);
    }
    ids.push_back({entry.get<int32_t>()});
  }
  return ids;
}

Result<TextOrIds> ReadOne(const Json& value, const std::string& path, const ApiModel& model) {
  TextOrIds prompt;
  if (value.is_string()) {
    prompt.text = value.get<std::string>();
    return prompt;
  }
  if (!value.is_array() || value.empty())
    return FieldMismatch(path, "a string or a list of token ids", &value);
  prompt.is_text = false;
  ASSIGN_OR_RETURN(prompt.ids, ReadIds(value, path, model));
  return prompt;
}

Result<std::vector<TextOrIds>> ReadPrompts(const FieldReader& fields, const ApiModel& model) {
  const Json* value = fields.Find("prompt");
  const bool is_list = value != nullptr && value->is_array();
  if (value == nullptr || (!value->is_string() && !is_list) || (is_list && value->empty()))
    return fields.Mismatch("prompt", "a string, a list of token ids, or a list of these");
  std::vector<TextOrIds> prompts;
  if (!is_list || (*value)[0].is_number()) {
    ASSIGN_OR_RETURN(TextOrIds prompt, ReadOne(*value, "prompt", model));
    prompts.push_back(std::move(prompt));
    return prompts;
  }
  if (value->size() > kMaxPrompts)
    return fields.Mismatch("prompt", fmt::format("at most {} prompts", kMaxPrompts));
  for (size_t i = 0; i < value->size(); ++i) {
    ASSIGN_OR_RETURN(TextOrIds prompt, ReadOne((*value)[i], fmt::format("prompt[{}]", i), model));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

// The ids of a prompt with a hole between it and the suffix.
Result<std::vector<TokenId>> FillInTheMiddle(const TextOrIds& prompt, const std::string& suffix,
                                             const ApiModel& model) {
  if (!prompt.is_text)
    return Status::InvalidArgument("prompt: expected a string where there is a suffix, found ids");
  if (model.tokenizer == nullptr || !model.tokenizer->FindAddedToken(markers::kFimBegin)) {
    return Status::InvalidArgument(
        "suffix: this model has no tokens for filling in the middle, leave it out");
  }
  return model.tokenizer->Encode(RenderFillInTheMiddle(prompt.text, suffix));
}

std::string TextOf(const TextOrIds& prompt, const ApiModel& model) {
  if (prompt.is_text) return prompt.text;
  return model.tokenizer == nullptr ? std::string() : model.tokenizer->Decode(prompt.ids);
}

Status ReadLogprobs(const FieldReader& fields, bool echoes, ApiCall* call,
                    SamplingParams* sampling) {
  if (fields.Find("logprobs") == nullptr) return Status::Ok();
  RETURN_IF_ERROR(fields.Integer("logprobs", 0, kMaxLogprobs, &sampling->num_logprobs));
  if (echoes) {
    return Status::InvalidArgument(
        "echo: expected false where logprobs are asked for, found true: there are none of prompts");
  }
  call->wants_logprobs = true;
  return Status::Ok();
}

}  // namespace

Result<ApiCall> ParseCompletionRequest(const Json& body, const ApiModel& model) {
  const FieldReader fields(body);
  ApiCall call;
  GenerationRequest request;
  RETURN_IF_ERROR(ReadModelName(fields, model, &call.model));
  RETURN_IF_ERROR(ReadServiceFields(fields, &call));
  RETURN_IF_ERROR(ReadStreaming(fields, &call));
  RETURN_IF_ERROR(ReadSampling(fields, model, &request));
  request.max_tokens = kDefaultMaxTokens;
  RETURN_IF_ERROR(ReadTokenLimit(fields, "max_tokens", &request.max_tokens));
  RETURN_IF_ERROR(fields.Only("best_of", {1, request.num_choices}));
  bool echoes = false;
  std::string suffix;
  RETURN_IF_ERROR(fields.Flag("echo", &echoes));
  RETURN_IF_ERROR(fields.Text("suffix", &suffix));
  RETURN_IF_ERROR(ReadLogprobs(fields, echoes, &call, &request.sampling));
  ASSIGN_OR_RETURN(std::vector<TextOrIds> prompts, ReadPrompts(fields, model));
  for (TextOrIds& prompt : prompts) {
    if (echoes) call.echoes.push_back(TextOf(prompt, model));
    if (!suffix.empty()) {
      ASSIGN_OR_RETURN(request.input, FillInTheMiddle(prompt, suffix, model));
    } else if (prompt.is_text) {
      request.input = std::move(prompt.text);
    } else {
      request.input = std::move(prompt.ids);
    }
    call.requests.push_back(request);
  }
  return call;
}

}  // namespace hadal
