// The parts of the AVX-512 table, one source each; the rules are those of avx2/parts.h. Processors
// with this set have the F, BW, VL, DQ and VNNI extensions.
#pragma once

#include "kernels/kernel_table.h"

namespace hadal::avx512 {

void AddElementwise(KernelTable* table);
void AddGrouped(KernelTable* table);
void AddRoundRow(KernelTable* table);
void AddTurnedProducts32(KernelTable* table);
void AddTurnedProducts256(KernelTable* table);
void AddWordRows(KernelTable* table);
void AddWordScores(KernelTable* table);
void AddWordValues(KernelTable* table);

}  // namespace hadal::avx512
