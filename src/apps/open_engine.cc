#include "apps/open_engine.h"

#include <utility>

#include "apps/model_path.h"
#include "text/chat_layout.h"

namespace hadal {

Result<std::unique_ptr<Engine>> OpenEngine(EngineOptions options, const std::string& layout) {
  ASSIGN_OR_RETURN(options.tokenizer_folder, ModelFolderPath(options.runner.model_path));
  if (!layout.empty()) options.layout = FindChatLayout(layout);
  return Engine::Open(options);
}

Result<std::unique_ptr<Engine>> OpenEngine(const RunnerOptions& runner, const std::string& layout) {
  EngineOptions options;
  options.runner = runner;
  return OpenEngine(std::move(options), layout);
}

}  // namespace hadal
