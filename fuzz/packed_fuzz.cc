// Any safetensors file as an export of compressed-tensors, GPTQ or AWQ: the first bytes choose the
// method and the size of the matrix "m". An error of one line, or a matrix whose values are the
// same in every form.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <unistd.h>

#include "base/check.h"
#include "formats/checkpoint.h"
#include "formats/packed_weight.h"
#include "formats/weight_unpacker.h"
#include "tensor/quantize.h"

namespace hadal {
namespace {

std::string PathOfFile() {
  static const std::string path =
      "/tmp/hadal_packed_fuzz_" + std::to_string(getpid()) + ".safetensors";
  return path;
}

void CheckUnpacked(const PackedWeight& packed) {
  static WeightUnpacker unpacker(1);
  const Result<UnpackedMatrix> unpacked = unpacker.Unpack(packed, /*wants_floats=*/false);
  if (!unpacked.ok() || IsBlocked(unpacked.value().matrix.format)) return;
  std::vector<float> row(static_cast<size_t>(packed.cols));
  for (int r = 0; r < packed.rows; ++r) {
    packed.DecodeRow(r, row);
    for (int c = 0; c < packed.cols; ++c) {
      HADAL_CHECK(ElementAt(unpacked.value().matrix, r, c) == row[static_cast<size_t>(c)]);
    }
  }
}

}  // namespace
}  // namespace hadal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hadal;
  if (size < 4) return 0;
  PackedScheme scheme;
  scheme.method = static_cast<PackedMethod>(1 + data[0] % 3);
  scheme.bits = (data[0] & 16) != 0 && scheme.method == PackedMethod::kGptq ? 8 : 4;
  scheme.stores_zero_less_one = (data[0] & 32) != 0;
  scheme.group_size = data[1];
  const int rows = 1 + data[2], cols = 1 + data[3];
  std::FILE* file = std::fopen(PathOfFile().c_str(), "wb");
  HADAL_CHECK(file != nullptr);
  std::fwrite(data + 4, 1, size - 4, file);
  std::fclose(file);
  const auto checkpoint = Checkpoint::Open(PathOfFile());
  if (!checkpoint.ok()) return 0;
  const auto packed = FindPackedWeight(*checkpoint.value(), scheme, "m", rows, cols);
  HADAL_CHECK(packed.status().message().find('\n') == std::string::npos);
  if (packed.ok() && packed.value()) CheckUnpacked(*packed.value());
  return 0;
}
