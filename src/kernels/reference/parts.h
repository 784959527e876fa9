// The parts of the reference table, one source each.
#pragma once

#include "kernels/kernel_table.h"

namespace hadal::reference {

void AddProducts(KernelTable* table);
void AddRounded(KernelTable* table);
void AddCacheRows(KernelTable* table);
void AddAttention(KernelTable* table);
void AddAttentionWords(KernelTable* table);
void AddElementwise(KernelTable* table);

}  // namespace hadal::reference
