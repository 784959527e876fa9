// The fields that chat and completion requests of the OpenAI kind share, ours and other servers'
// additions included.
#pragma once

#include <string>

#include "base/status.h"
#include "engine/generation_request.h"
#include "server/api_call.h"
#include "server/field_reader.h"

namespace hadal {

// temperature, top_p, top_k, min_p, presence_penalty, frequency_penalty, repetition_penalty,
// logit_bias, seed, stop, stop_token_ids, ignore_eos, n, speculation, cache_salt. What is not said
// is the model's own setting.
Status ReadSampling(const FieldReader& fields, const ApiModel& model, GenerationRequest* request);

// "stop", or what another API calls it: strings, of which empty ones are refused.
Status ReadStops(const FieldReader& fields, std::string_view key, std::vector<std::string>* stops);

// A limit of the answer, at least 1. Larger than any context is the same as none.
Status ReadTokenLimit(const FieldReader& fields, std::string_view key, int* max_tokens);

// "model", checked against the names where some were given.
Status ReadModelName(const FieldReader& fields, const ApiModel& model, std::string* name);

// stream, stream_options.
Status ReadStreaming(const FieldReader& fields, ApiCall* call);

// user, metadata, service_tier, store, prompt_cache_key, ...: fields about the service instead of
// the answer.
Status ReadServiceFields(const FieldReader& fields, ApiCall* call);

}  // namespace hadal
