// The safetensors container: eight bytes of length, a JSON header, then the data. Specification,
// 2.10.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/tensor_info.h"

namespace hadal {

// The tensors of one file whose whole content is `file`; their bytes point into it, file_idx is 0.
// `what` names the file in errors. kCorrupt unless every rule of the container holds: the header is
// a JSON object without repeated names, each tensor has a known dtype, a shape and a span of
// exactly the bytes that the shape asks for, and the spans tile the data without hole, overlap or
// rest. Costs memory in proportion to the header, which is checked to lie in the file first.
Result<std::vector<TensorInfo>> ParseSafetensors(std::span<const std::byte> file,
                                                 const std::string& what);

}  // namespace hadal
