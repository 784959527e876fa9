// Products of turned weights of types with blocks of 32 columns with rounded rows.
#include "kernels/avx512/parts.h"
#include "kernels/avx512/turned_products.h"

namespace hadal::avx512 {

void AddTurnedProducts32(KernelTable* table) {
  AddTurned<QuantFormat::kQ4_0>(table);
  AddTurned<QuantFormat::kQ4_1>(table);
  AddTurned<QuantFormat::kQ5_0>(table);
  AddTurned<QuantFormat::kQ5_1>(table);
  AddTurned<QuantFormat::kQ8_0>(table);
  AddTurned<QuantFormat::kIq4Nl>(table);
}

}  // namespace hadal::avx512
