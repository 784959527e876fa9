#include "server/sampling_fields.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <optional>

#include <fmt/format.h>

#include "base/quote.h"

namespace hadal {
namespace {

constexpr int kMaxChoices = 128;
constexpr int kMaxLogitBias = 1024;

Status ReadLogitBias(const FieldReader& fields, const ApiModel& model, SamplingParams* sampling) {
  ASSIGN_OR_RETURN(const Json* map, fields.Object("logit_bias"));
  if (map == nullptr) return Status::Ok();
  if (map->size() > kMaxLogitBias) {
    return Status::InvalidArgument(fmt::format("logit_bias: expected at most {} entries, found {}",
                                               kMaxLogitBias, map->size()));
  }
  const FieldReader entries(*map, "logit_bias");
  for (const auto& [key, value] : map->items()) {
    TokenId id;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id.value);
    if (error != std::errc() || end != key.data() + key.size() || id.value < 0 ||
        id.value >= model.num_tokens) {
      return Status::InvalidArgument(
          fmt::format("logit_bias: expected token ids from 0 to {} as keys, found {}",
                      model.num_tokens - 1, Quoted(key, 40)));
    }
    float bias = 0;
    RETURN_IF_ERROR(entries.Number(key, -100, 100, &bias));
    sampling->logit_bias.emplace_back(id, bias);
  }
  return Status::Ok();
}

Status ReadStopTokens(const FieldReader& fields, const ApiModel& model,
                      std::vector<TokenId>* tokens) {
  ASSIGN_OR_RETURN(const Json* list, fields.List("stop_token_ids"));
  if (list == nullptr) return Status::Ok();
  for (size_t i = 0; i < list->size(); ++i) {
    const Json& entry = (*list)[i];
    if (!entry.is_number_integer() || entry < 0 || entry >= model.num_tokens) {
      return FieldMismatch(fmt::format("stop_token_ids[{}]", i),
                           fmt::format("a token id from 0 to {}", model.num_tokens - 1), &entry);
    }
    tokens->push_back({entry.get<int32_t>()});
  }
  return Status::Ok();
}

// {"drafter": "none" | "ngram" | "mtp" | "model", "tokens": N}, both optional. Whether the drafter
// is there is the engine's to say.
Status ReadSpeculation(const FieldReader& fields, const ApiModel& model,
                       GenerationRequest* request) {
  ASSIGN_OR_RETURN(const Json* object, fields.Object("speculation"));
  if (object == nullptr) return Status::Ok();
  const FieldReader inner(*object, "speculation");
  Speculation speculation = model.default_speculation;
  std::string name(DrafterName(speculation.drafter));
  RETURN_IF_ERROR(inner.Text("drafter", &name));
  const std::optional<DrafterKind> drafter = FindDrafter(name);
  if (!drafter) return inner.Mismatch("drafter", "none, ngram, mtp or model");
  speculation.drafter = *drafter;
  RETURN_IF_ERROR(inner.Integer("tokens", 0, kMostDrafts, &speculation.max_drafts));
  request->speculation = speculation;
  return Status::Ok();
}

}  // namespace

Status ReadStops(const FieldReader& fields, std::string_view key, std::vector<std::string>* stops) {
  RETURN_IF_ERROR(fields.Texts(key, stops));
  for (const std::string& stop : *stops) {
    if (stop.empty()) {
      return Status::InvalidArgument(
          fmt::format("{}: expected strings that are not empty, found an empty one", key));
    }
  }
  return Status::Ok();
}

Status ReadTokenLimit(const FieldReader& fields, std::string_view key, int* max_tokens) {
  int64_t limit = *max_tokens;
  RETURN_IF_ERROR(fields.Wide(key, 1, INT64_MAX, &limit));
  *max_tokens = static_cast<int>(std::min<int64_t>(limit, INT_MAX));
  return Status::Ok();
}

Status ReadSampling(const FieldReader& fields, const ApiModel& model, GenerationRequest* request) {
  SamplingParams* sampling = &request->sampling;
  *sampling = model.default_sampling;
  RETURN_IF_ERROR(fields.Number("temperature", 0, 2, &sampling->temperature));
  RETURN_IF_ERROR(fields.Number("top_p", 0, 1, &sampling->top_p));
  RETURN_IF_ERROR(fields.Integer("top_k", -1, INT_MAX, &sampling->top_k));
  RETURN_IF_ERROR(fields.Number("min_p", 0, 1, &sampling->min_p));
  RETURN_IF_ERROR(fields.Number("presence_penalty", -2, 2, &sampling->presence_penalty));
  RETURN_IF_ERROR(fields.Number("frequency_penalty", -2, 2, &sampling->frequency_penalty));
  RETURN_IF_ERROR(fields.Number("repetition_penalty", 0.01, 100, &sampling->repetition_penalty));
  RETURN_IF_ERROR(ReadLogitBias(fields, model, sampling));
  int64_t seed = 0;
  RETURN_IF_ERROR(fields.Wide("seed", INT64_MIN, INT64_MAX, &seed));
  if (fields.Find("seed") != nullptr) request->seed = static_cast<uint64_t>(seed);
  RETURN_IF_ERROR(ReadStops(fields, "stop", &request->stop));
  RETURN_IF_ERROR(ReadStopTokens(fields, model, &request->stop_tokens));
  RETURN_IF_ERROR(fields.Flag("ignore_eos", &request->ignore_eos));
  RETURN_IF_ERROR(fields.Integer("n", 1, kMaxChoices, &request->num_choices));
  RETURN_IF_ERROR(ReadSpeculation(fields, model, request));
  return fields.Text("cache_salt", &request->cache_salt);
}

Status ReadModelName(const FieldReader& fields, const ApiModel& model, std::string* name) {
  *name = model.names[0];
  std::string asked;
  RETURN_IF_ERROR(fields.Text("model", &asked));
  if (!model.checks_names) {
    if (!asked.empty()) *name = asked;
    return Status::Ok();
  }
  if (std::ranges::find(model.names, asked) != model.names.end()) {
    *name = asked;
    return Status::Ok();
  }
  std::string known;
  for (const std::string& one : model.names) known += (known.empty() ? "" : " or ") + Quoted(one);
  return Status::NotFound(
      fmt::format("model: expected {}, found {}", known, DescribeJson(fields.Find("model"))));
}

Status ReadStreaming(const FieldReader& fields, ApiCall* call) {
  RETURN_IF_ERROR(fields.Flag("stream", &call->is_streamed));
  ASSIGN_OR_RETURN(const Json* options, fields.Object("stream_options"));
  if (options == nullptr) return Status::Ok();
  if (!call->is_streamed) {
    return Status::InvalidArgument(
        "stream_options: expected it only together with \"stream\": true, found it without");
  }
  const FieldReader inner(*options, "stream_options");
  RETURN_IF_ERROR(inner.Flag("include_usage", &call->wants_usage));
  return inner.Only("include_obfuscation", {false});
}

Status ReadServiceFields(const FieldReader& fields, ApiCall* call) {
  RETURN_IF_ERROR(fields.Text("user", &call->user));
  std::string hint;
  RETURN_IF_ERROR(fields.Text("safety_identifier", &hint));
  if (call->user.empty()) call->user = hint;
  RETURN_IF_ERROR(fields.Text("prompt_cache_key", &hint));  // prefixes are found by content anyway
  RETURN_IF_ERROR(fields.Only("prompt_cache_retention", {"in_memory", "in-memory"}));
  RETURN_IF_ERROR(fields.Only("service_tier", {"auto", "default"}));
  RETURN_IF_ERROR(fields.Only("store", {false}));
  return fields.Object("metadata").status();  // belongs to stored answers, of which there are none
}

}  // namespace hadal
