#include "formats/tensor_info.h"

#include <algorithm>

#include <fmt/format.h>

namespace hadal {

int64_t TensorInfo::num_elements() const {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

std::string ShapeText(std::span<const int64_t> shape) {
  constexpr size_t kMaxShown = 8;
  const auto shown = shape.subspan(0, std::min(shape.size(), kMaxShown));
  return fmt::format("[{}{}]", fmt::join(shown, ", "), shape.size() > kMaxShown ? ", ..." : "");
}

}  // namespace hadal
