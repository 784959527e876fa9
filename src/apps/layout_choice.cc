#include "apps/layout_choice.h"

#include <vector>

#include "formats/model_folder.h"
#include "text/markers.h"

namespace hadal {

void AddLayoutOption(CLI::App* command, std::string* name) {
  static const std::vector<std::string> kNames = {"v2",      "v2.5", "v3",       "v3-0324", "r1",
                                                  "r1-0528", "v3.1", "v3.2-exp", "v3.2"};
  command
      ->add_option("--layout", *name, "Chat layout (default: the one that the model's files say)")
      ->check(CLI::IsMember(kNames));
}

Result<ChatLayoutChoice> LayoutOfModel(const std::string& folder, const Tokenizer* tokenizer) {
  ASSIGN_OR_RETURN(const ModelFolder model, ReadModelFolder(folder));
  std::string model_type;
  if (HasValue(model.config, "model_type")) {
    ASSIGN_OR_RETURN(model_type, ReadString(model.config, "model_type", folder + "/config.json"));
  }
  if (tokenizer == nullptr) return ChooseChatLayout("", model_type, /*has_think_tokens=*/false);
  return ChooseChatLayout(tokenizer->chat_template(), model_type,
                          tokenizer->FindAddedToken(markers::kThink).has_value());
}

}  // namespace hadal
