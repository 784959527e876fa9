// Tensors of a checkpoint as numbers, element by element: slow, exact, for tests.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "formats/checkpoint.h"

namespace hadal {

// All elements of a tensor, row-major. An F8_E4M3 matrix is multiplied by its block scales
// "<name>_scale_inv": w[r][c] = code[r][c] * scale[r / 128][c / 128] (specification, 7.3).
// kNotFound without the tensor or its scales; kUnsupported for a dtype that the family lacks.
Result<std::vector<double>> ReadTensorValues(const Checkpoint& checkpoint, const std::string& name);

}  // namespace hadal
