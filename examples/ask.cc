// hadal in a C++ program: opens a model and prints its answer while it is made.
//   build/release/ask MODEL_FOLDER "What is the capital of France?"
#include <cstdio>
#include <memory>
#include <string>

#include "engine/engine.h"

namespace {

hadal::Status Ask(const std::string& model, const std::string& question) {
  hadal::EngineOptions options;
  options.runner.model_path = model;
  ASSIGN_OR_RETURN(const std::unique_ptr<hadal::Engine> engine, hadal::Engine::Open(options));

  hadal::Conversation conversation;
  hadal::ChatMessage& message = conversation.messages.emplace_back();
  message.role = "user";
  message.content = question;
  hadal::GenerationRequest request;
  request.input = conversation;
  request.sampling = engine->default_sampling();
  request.max_tokens = 500;
  ASSIGN_OR_RETURN(const std::shared_ptr<hadal::ResponseStream> stream, engine->Submit(request));

  hadal::ResponseChunk chunk;
  while (stream->Next(&chunk)) {
    for (const hadal::ResponsePiece& piece : chunk.pieces) {
      const std::string_view text = chunk.TextOf(piece);
      std::fwrite(text.data(), 1, text.size(), stdout);
    }
    std::fflush(stdout);
    for (const hadal::ResponseEnd& end : chunk.ends)
      if (end.finish == hadal::FinishReason::kError) return {end.error_code, end.error};
  }
  std::printf("\n");
  return hadal::Status::Ok();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: ask MODEL_FOLDER QUESTION\n");
    return 2;
  }
  const hadal::Status status = Ask(argv[1], argv[2]);
  if (!status.ok()) std::fprintf(stderr, "ask: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
