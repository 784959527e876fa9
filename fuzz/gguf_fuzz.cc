// Any bytes as a GGUF file: an error of one line, or tensors and arrays that lie in the file.
#include <cstdint>
#include <span>
#include <string>

#include "base/check.h"
#include "formats/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hadal;
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  const auto found = ParseGguf(file, "fuzz");
  if (!found.ok()) {
    HADAL_CHECK(found.status().message().find('\n') == std::string::npos);
    return 0;
  }
  size_t covered = 0;
  for (const GgufTensor& tensor : found->tensors) {
    HADAL_CHECK(tensor.bytes.empty() ||
                (tensor.bytes.data() >= file.data() + found->data_begin &&
                 tensor.bytes.data() + tensor.bytes.size() <= file.data() + size));
    covered += tensor.bytes.size();
  }
  HADAL_CHECK(covered <= size);
  for (const auto& [key, value] : found->metadata) {
    HADAL_CHECK(!key.empty());
    const GgufArray* array = value.AsArray();
    if (array == nullptr || array->element_type != GgufType::kString) continue;
    HADAL_CHECK(array->Strings().size() == array->count);
  }
  return 0;
}
