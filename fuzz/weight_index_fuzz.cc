// Any bytes as model.safetensors.index.json: an error of one line, or plain file names.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "formats/weight_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hadal;
  const auto index =
      ParseWeightIndex(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!index.ok()) {
    HADAL_CHECK(index.status().message().find('\n') == std::string::npos);
    return 0;
  }
  for (const std::string& file : index.value().files) {
    HADAL_CHECK(!file.empty() && file.find('/') == std::string::npos);
    HADAL_CHECK(file.find("..") == std::string::npos);
  }
  for (const auto& [name, file] : index.value().file_of) {
    HADAL_CHECK(file >= 0 && static_cast<size_t>(file) < index.value().files.size());
  }
  return 0;
}
