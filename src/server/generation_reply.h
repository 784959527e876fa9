// A reply that the engine writes: reads its streams without waiting, lets a ReplyWriter spell them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "server/api_call.h"
#include "server/http_message.h"
#include "server/reply_writer.h"

namespace hadal {

class GenerationReply : public PendingReply {
 public:
  // `engine` must outlive the reply; `streams` are of one request, one for each of its prompts.
  GenerationReply(Engine* engine, std::vector<std::shared_ptr<ResponseStream>> streams,
                  std::unique_ptr<ReplyWriter> writer, const ApiCall& call);
  ~GenerationReply() override;

  void Start(std::function<void()> wake) override;
  bool Read(ReplyPart* part) override;
  std::string_view keep_alive() const override;
  void Interrupt() override;
  void Abandon() override;
  void AddToLog(Json* line) const override;

 private:
  // Takes in what the engine has written; what the writer says goes to `out`.
  void TakeNews(std::string* out);
  void NoteEnds(const ResponseChunk& chunk);
  void Fail(const Status& status);
  void Finish(std::string* out, ReplyPart* part);

  Engine* const engine_;
  const std::vector<std::shared_ptr<ResponseStream>> streams_;
  const std::unique_ptr<ReplyWriter> writer_;
  const bool is_streamed_;
  const std::string model_, user_;
  ResponseChunk chunk_;
  std::vector<bool> has_ended_;  // by stream
  size_t num_ended_ = 0;
  bool has_begun_ = false, is_over_ = false;
  Status failure_;
  Usage usage_;
  Timings timings_;
  std::string finish_reasons_;
};

}  // namespace hadal
