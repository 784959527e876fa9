#include "kernels/reference/parts.h"
#include "kernels/sets.h"

namespace hadal {

KernelTable ReferenceKernels() {
  KernelTable table = {};
  table.name = "reference";
  reference::AddProducts(&table);
  reference::AddRounded(&table);
  reference::AddCacheRows(&table);
  reference::AddAttention(&table);
  reference::AddAttentionWords(&table);
  reference::AddElementwise(&table);
  return table;
}

}  // namespace hadal
