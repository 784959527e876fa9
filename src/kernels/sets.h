// The kernel sets of the project, one folder each. A set starts from the table below it and
// replaces what it does better; dispatch.cc alone knows which of them a build has.
#pragma once

#include "kernels/kernel_table.h"

namespace hadal {

// Plain loops for every entry: any processor, and the truth for the other sets.
KernelTable ReferenceKernels();

// 256-bit vectors with fused multiply-add and half-precision conversion.
KernelTable Avx2Kernels(KernelTable base);

// 512-bit vectors with products of bytes and of words (VNNI).
KernelTable Avx512Kernels(KernelTable base);

}  // namespace hadal
