// Products of turned weights of types with blocks of 256 columns with rounded rows.
#include "kernels/avx512/parts.h"
#include "kernels/avx512/turned_products.h"

namespace hadal::avx512 {

void AddTurnedProducts256(KernelTable* table) {
  AddTurned<QuantFormat::kQ2_K>(table);
  AddTurned<QuantFormat::kQ3_K>(table);
  AddTurned<QuantFormat::kQ4_K>(table);
  AddTurned<QuantFormat::kQ5_K>(table);
  AddTurned<QuantFormat::kQ6_K>(table);
  AddTurned<QuantFormat::kIq4Xs>(table);
}

}  // namespace hadal::avx512
