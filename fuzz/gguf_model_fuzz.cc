// Any bytes as a GGUF file of a model: its keys as a config, its tensors under the published names,
// its tokenizer and the files that stand for it. Errors of one line, or parts of the file; what is
// made of a sound tokenizer is read back.
#include <cstdint>
#include <span>
#include <string>

#include "base/check.h"
#include "formats/gguf.h"
#include "formats/gguf_config.h"
#include "formats/gguf_tensors.h"
#include "model/model_config.h"
#include "text/gguf_tokenizer.h"
#include "text/gguf_tokenizer_files.h"
#include "text/tokenizer.h"

namespace hadal {
namespace {

void CheckOneLine(const Status& status) {
  HADAL_CHECK(status.message().find('\n') == std::string::npos);
}

void CheckTensors(const GgufFile& file, std::span<const std::byte> bytes) {
  GgufTensors tensors;
  const Status status = AddGgufTensors(file.tensors, 0, "fuzz", &tensors);
  CheckOneLine(status);
  if (!status.ok()) return;
  AddMissingMtpNorm(1, &tensors);
  for (const TensorInfo& tensor : tensors.tensors) {
    HADAL_CHECK(tensor.bytes.empty() ||
                (tensor.bytes.data() >= bytes.data() &&
                 tensor.bytes.data() + tensor.bytes.size() <= bytes.data() + bytes.size()));
  }
}

void CheckTokenizer(const GgufFile& file) {
  const Result<TokenizerFiles> files = MakeTokenizerFiles(file, "fuzz");
  CheckOneLine(files.status());
  if (!files.ok()) return;
  CheckOneLine(Tokenizer::Parse(files.value().tokenizer, "made").status());
}

}  // namespace
}  // namespace hadal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hadal;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const auto file = ParseGguf(bytes, "fuzz");
  if (!file.ok()) return 0;
  CheckTensors(file.value(), bytes);
  CheckTokenizer(file.value());
  const Result<GgufConfig> config = ReadGgufConfig(file.value(), file->tensors, "fuzz");
  CheckOneLine(config.status());
  if (config.ok()) CheckOneLine(ModelConfig::Parse(config.value().config, "fuzz").status());
  return 0;
}
