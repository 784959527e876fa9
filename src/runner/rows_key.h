// The name under which cache rows may be kept and found again.
#pragma once

#include <string_view>

#include "base/hash.h"
#include "formats/checkpoint.h"
#include "runner/model_runner.h"

namespace hadal {

// What the rows of a model depend on beside their tokens: config, names, types, shapes and samples
// of the weights, sizes and times of their files, the form of attention, the storage of the cache
// and the kernel set. Other weights under the same names have other bytes somewhere, and files that
// were changed have another time; that a copy of a model has a new key costs its cache only.
Hash128 RowsKey(const Checkpoint& checkpoint, const RunnerOptions& options,
                std::string_view kernels_name, int64_t block_bytes);

}  // namespace hadal
