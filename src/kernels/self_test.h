// Whether a kernel set computes what it should on this processor. For `hadal doctor`; the tests of
// the project go much further.
#pragma once

#include <string>

#include "kernels/kernel_table.h"

namespace hadal {

// Compares every kernel with known values and, to the bit, with `reference`, on small inputs. Empty
// when all agree, else the first kernel that does not, as "matmul, F8_E4M3". A tenth of a second at
// most.
std::string FindFaultyKernel(const KernelTable& kernels, const KernelTable& reference);

}  // namespace hadal
