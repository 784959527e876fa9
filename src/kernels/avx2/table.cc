#include "kernels/avx2/parts.h"
#include "kernels/sets.h"

namespace hadal {

KernelTable Avx2Kernels(KernelTable base) {
  KernelTable table = base;
  table.name = "avx2";
  avx2::AddMatMul(&table);
  avx2::AddWeightedSum(&table);
  avx2::AddGrouped(&table);
  avx2::AddBlockProducts32(&table);
  avx2::AddBlockProducts256(&table);
  avx2::AddTurnedProducts256(&table);
  avx2::AddRoundRow(&table);
  avx2::AddCacheRows(&table);
  avx2::AddAttention(&table);
  avx2::AddWordRows(&table);
  avx2::AddAttentionWords(&table);
  avx2::AddElementwise(&table);
  return table;
}

}  // namespace hadal
