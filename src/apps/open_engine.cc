#include "apps/open_engine.h"

#include <utility>

#include "apps/model_path.h"
#include "text/chat_layout.h"

namespace hadal {

Result<std::unique_ptr<Engine>> OpenEngine(EngineOptions options, const std::string& layout) {
  ASSIGN_OR_RETURN(options.tokenizer_folder, ModelFolderPath(options.runner.model_path));
  const std::string& draft_path = options.runner.drafting.draft_model_path;
  if (options.speculation.drafter == DrafterKind::kModel && draft_path.empty()) {
    return Status::InvalidArgument(
        "--draft-model: expected the path of a smaller model, which --spec model asks for, found "
        "none");
  }
  if (!draft_path.empty()) {
    ASSIGN_OR_RETURN(options.draft_tokenizer_folder, ModelFolderPath(draft_path));
  }
  if (!layout.empty()) options.layout = FindChatLayout(layout);
  return Engine::Open(options);
}

}  // namespace hadal
