// Products of types with blocks of 32 columns with rounded rows.
#include "kernels/avx2/block_products.h"
#include "kernels/avx2/parts.h"

namespace hadal::avx2 {

void AddBlockProducts32(KernelTable* table) {
  AddBlockProduct<QuantFormat::kQ4_0>(table);
  AddBlockProduct<QuantFormat::kQ4_1>(table);
  AddBlockProduct<QuantFormat::kQ5_0>(table);
  AddBlockProduct<QuantFormat::kQ5_1>(table);
  AddBlockProduct<QuantFormat::kQ8_0>(table);
  AddBlockProduct<QuantFormat::kIq4Nl>(table);
}

}  // namespace hadal::avx2
