#include "kernels/avx512/parts.h"
#include "kernels/sets.h"

namespace hadal {

KernelTable Avx512Kernels(KernelTable base) {
  KernelTable table = base;
  table.name = "avx512";
  avx512::AddElementwise(&table);
  avx512::AddGrouped(&table);
  avx512::AddRoundRow(&table);
  avx512::AddTurnedProducts32(&table);
  avx512::AddTurnedProducts256(&table);
  avx512::AddWordRows(&table);
  avx512::AddWordScores(&table);
  avx512::AddWordValues(&table);
  return table;
}

}  // namespace hadal
