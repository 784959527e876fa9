// The parts of the AVX2 table, one source each. Sources of this folder are compiled for processors
// with AVX2, FMA and F16C, so they include nothing with code that the rest of the program might
// share: only intrinsics, <cstdint>, kernel_table.h, block_layout.h and headers of this folder.
// Everything but these functions is in unnamed namespaces (tools/check_isa_symbols.sh).
#pragma once

#include "kernels/kernel_table.h"

namespace hadal::avx2 {

void AddMatMul(KernelTable* table);
// A product of one or two rows with a blocked weight (matmul_blocks.cc), for AddMatMul.
void FewRowsOfBlocks(QuantFormat format, const MatMulArgs& args);

void AddWeightedSum(KernelTable* table);
void AddGrouped(KernelTable* table);
void AddBlockProducts32(KernelTable* table);
void AddBlockProducts256(KernelTable* table);
void AddTurnedProducts256(KernelTable* table);
void AddRoundRow(KernelTable* table);
void AddCacheRows(KernelTable* table);
void AddAttention(KernelTable* table);
void AddWordRows(KernelTable* table);
void AddAttentionWords(KernelTable* table);
void AddElementwise(KernelTable* table);

}  // namespace hadal::avx2
