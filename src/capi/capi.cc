// The C interface of hadal.h over hadal::Engine. Nothing is thrown across it.
#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "capi/hadal.h"
#include "engine/engine.h"

struct hadal_engine {
  std::unique_ptr<hadal::Engine> engine;
};

struct hadal_answer {
  hadal::Engine* engine = nullptr;
  std::shared_ptr<hadal::ResponseStream> stream;
  hadal::ResponseChunk chunk;
  size_t next_piece = 0;  // of the chunk
  std::vector<int32_t> tokens;
  hadal::ResponseEnd end;
};

namespace hadal {
namespace {

std::string& LastError() {
  thread_local std::string error;
  return error;
}

// Runs `body`, whose Result becomes a pointer, and notes why there is none.
template <class Body>
auto Guarded(Body body) -> decltype(std::move(body()).value().release()) {
  try {
    auto result = body();
    if (result.ok()) return std::move(result).value().release();
    LastError() = result.status().message();
  } catch (const std::exception& failure) {
    LastError() = failure.what();
  }
  return nullptr;
}

// The caller's structure in the newest version: what it does not have yet keeps its default.
template <class T>
Result<T> Complete(const T* given, T defaults, const char* name) {
  if (given == nullptr) return Status::InvalidArgument(std::string(name) + ": found NULL");
  if (given->struct_size < sizeof(size_t) || given->struct_size > sizeof(T)) {
    return Status::InvalidArgument(std::string(name) +
                                   ": struct_size is not one of this library's");
  }
  std::memcpy(&defaults, given, given->struct_size);
  return defaults;
}

Result<std::unique_ptr<hadal_engine>> Open(const hadal_options* given) {
  ASSIGN_OR_RETURN(const hadal_options options,
                   Complete<hadal_options>(given, HADAL_OPTIONS_INIT, "options"));
  if (options.model_path == nullptr) return Status::InvalidArgument("model_path: found NULL");
  EngineOptions engine_options;
  engine_options.runner.model_path = options.model_path;
  engine_options.runner.num_threads = options.num_threads;
  engine_options.runner.cache_tokens = options.cache_tokens;
  if (options.cache_dir != nullptr) engine_options.cache_dir = options.cache_dir;
  auto engine = std::make_unique<hadal_engine>();
  ASSIGN_OR_RETURN(engine->engine, Engine::Open(engine_options));
  return engine;
}

Result<Conversation> ReadMessages(const hadal_request& request) {
  Conversation conversation;
  for (size_t i = 0; i < request.num_messages; ++i) {
    const hadal_message& given = request.messages[i];
    if (given.role == nullptr || given.content == nullptr) {
      return Status::InvalidArgument("messages[" + std::to_string(i) +
                                     "]: expected a role and a content, found NULL");
    }
    ChatMessage& message = conversation.messages.emplace_back();
    message.role = given.role;
    message.content = given.content;
  }
  conversation.options.thinking = request.thinking != 0;
  return conversation;
}

Status ReadPrompt(const hadal_request& request, GenerationRequest* out) {
  const int num_given =
      (request.messages != nullptr) + (request.prompt != nullptr) + (request.tokens != nullptr);
  if (num_given != 1) {
    return Status::InvalidArgument("request: expected one of messages, prompt and tokens, found " +
                                   std::to_string(num_given));
  }
  if (request.messages != nullptr) {
    ASSIGN_OR_RETURN(out->input, ReadMessages(request));
  } else if (request.prompt != nullptr) {
    out->input = std::string(request.prompt);
  } else {
    std::vector<TokenId> tokens;
    for (size_t i = 0; i < request.num_tokens; ++i) tokens.push_back({request.tokens[i]});
    out->input = std::move(tokens);
  }
  return Status::Ok();
}

Result<std::unique_ptr<hadal_answer>> Ask(hadal_engine* engine, const hadal_request* given) {
  if (engine == nullptr) return Status::InvalidArgument("engine: found NULL");
  ASSIGN_OR_RETURN(const hadal_request request,
                   Complete<hadal_request>(given, HADAL_REQUEST_INIT, "request"));
  GenerationRequest generation;
  RETURN_IF_ERROR(ReadPrompt(request, &generation));
  generation.sampling = engine->engine->default_sampling();
  if (request.uses_sampling != 0) {
    generation.sampling.temperature = request.temperature;
    generation.sampling.top_p = request.top_p;
    generation.sampling.min_p = request.min_p;
    generation.sampling.top_k = request.top_k;
  }
  if (request.has_seed != 0) generation.seed = request.seed;
  generation.max_tokens = request.max_tokens;
  generation.ignore_eos = request.ignore_eos != 0;
  for (size_t i = 0; i < request.num_stops; ++i) {
    if (request.stops[i] == nullptr) return Status::InvalidArgument("stops: found NULL");
    generation.stop.emplace_back(request.stops[i]);
  }
  auto answer = std::make_unique<hadal_answer>();
  answer->engine = engine->engine.get();
  ASSIGN_OR_RETURN(answer->stream, answer->engine->Submit(generation));
  return answer;
}

hadal_kind KindOf(MessageDelta::Kind kind) {
  switch (kind) {
    case MessageDelta::Kind::kReasoning:
      return HADAL_REASONING;
    case MessageDelta::Kind::kContent:
      return HADAL_CONTENT;
    case MessageDelta::Kind::kToolCallStart:
      return HADAL_TOOL_NAME;
    case MessageDelta::Kind::kToolCallArguments:
      return HADAL_TOOL_ARGUMENTS;
  }
  return HADAL_CONTENT;
}

hadal_finish FinishOf(FinishReason finish) {
  switch (finish) {
    case FinishReason::kNone:
      return HADAL_FINISH_NONE;
    case FinishReason::kStop:
      return HADAL_FINISH_STOP;
    case FinishReason::kLength:
      return HADAL_FINISH_LENGTH;
    case FinishReason::kToolCalls:
      return HADAL_FINISH_TOOL_CALLS;
    case FinishReason::kError:
      return HADAL_FINISH_ERROR;
    case FinishReason::kCancelled:
      return HADAL_FINISH_CANCELLED;
  }
  return HADAL_FINISH_ERROR;
}

// False when the answer has ended.
bool ReadChunk(hadal_answer* answer) {
  if (!answer->stream->Next(&answer->chunk)) return false;
  answer->next_piece = 0;
  for (const ResponseToken& token : answer->chunk.tokens)
    answer->tokens.push_back(token.token.token.value);
  if (!answer->chunk.ends.empty()) answer->end = answer->chunk.ends.back();
  return true;
}

}  // namespace
}  // namespace hadal

hadal_engine* hadal_open(const hadal_options* options) {
  return hadal::Guarded([&] { return hadal::Open(options); });
}

void hadal_close(hadal_engine* engine) { delete engine; }

hadal_answer* hadal_ask(hadal_engine* engine, const hadal_request* request) {
  return hadal::Guarded([&] { return hadal::Ask(engine, request); });
}

int hadal_next(hadal_answer* answer, hadal_piece* piece) {
  while (answer->next_piece == answer->chunk.pieces.size())
    if (!hadal::ReadChunk(answer)) return 0;
  const hadal::ResponsePiece& found = answer->chunk.pieces[answer->next_piece++];
  const std::string_view text = answer->chunk.TextOf(found);
  *piece = {hadal::KindOf(found.kind), found.tool_call_idx, text.data(), text.size()};
  return 1;
}

void hadal_answer_end(const hadal_answer* answer, hadal_end* end) {
  const hadal::ResponseEnd& found = answer->end;
  *end = {hadal::FinishOf(found.finish), found.usage.prompt_tokens, found.usage.cached_tokens,
          found.usage.completion_tokens, found.error.c_str()};
}

const int32_t* hadal_answer_tokens(const hadal_answer* answer, size_t* count) {
  *count = answer->tokens.size();
  return answer->tokens.data();
}

void hadal_cancel(hadal_answer* answer) { answer->engine->Cancel(*answer->stream); }

void hadal_answer_free(hadal_answer* answer) {
  if (answer != nullptr && answer->end.finish == hadal::FinishReason::kNone)
    answer->engine->Cancel(*answer->stream);
  delete answer;
}

const char* hadal_last_error(void) { return hadal::LastError().c_str(); }
