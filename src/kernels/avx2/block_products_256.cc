// Products of types with blocks of 256 columns with rounded rows.
#include "kernels/avx2/block_products.h"
#include "kernels/avx2/parts.h"

namespace hadal::avx2 {

void AddBlockProducts256(KernelTable* table) {
  AddBlockProduct<QuantFormat::kQ2_K>(table);
  AddBlockProduct<QuantFormat::kQ3_K>(table);
  AddBlockProduct<QuantFormat::kQ4_K>(table);
  AddBlockProduct<QuantFormat::kQ5_K>(table);
  AddBlockProduct<QuantFormat::kQ6_K>(table);
  AddBlockProduct<QuantFormat::kIq4Xs>(table);
}

}  // namespace hadal::avx2
