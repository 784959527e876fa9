// Any bytes as a safetensors file: an error of one line, or tensors that tile the data.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "base/check.h"
#include "formats/safetensors.h"
#include "tensor/scalar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hadal;
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  const auto tensors = ParseSafetensors(file, "fuzz");
  if (!tensors.ok()) {
    HADAL_CHECK(tensors.status().message().find('\n') == std::string::npos);
    return 0;
  }
  size_t covered = 0;
  for (const TensorInfo& tensor : tensors.value()) {
    HADAL_CHECK(tensor.bytes.empty() ||
                (tensor.bytes.data() >= file.data() + 8 &&
                 tensor.bytes.data() + tensor.bytes.size() <= file.data() + file.size()));
    HADAL_CHECK(static_cast<int64_t>(tensor.bytes.size()) * 8 ==
                tensor.num_elements() * DTypeBits(tensor.dtype));
    covered += tensor.bytes.size();
  }
  HADAL_CHECK(covered + 8 <= size);
  return 0;
}
