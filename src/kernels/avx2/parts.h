// The parts of the AVX2 table, one source each. Sources of this folder are compiled for processors
// with AVX2, FMA and F16C, so they include nothing with code that the rest of the program might
// share: only intrinsics, <cstdint>, kernel_table.h, block_layout.h and headers of this folder.
// Everything but these functions is in unnamed namespaces (tools/check_isa_symbols.sh).
#pragma once

#include "kernels/kernel_table.h"

namespace hadal::avx2 {

void AddMatMul(KernelTable* table);
void AddWeightedSum(KernelTable* table);
void AddGrouped(KernelTable* table);
void AddRoundRow(KernelTable* table);
void AddCacheRows(KernelTable* table);
void AddAttention(KernelTable* table);
void AddElementwise(KernelTable* table);

}  // namespace hadal::avx2
