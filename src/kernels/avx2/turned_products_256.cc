// Products of turned weights of types with blocks of 256 columns with rounded rows.
#include "kernels/avx2/block_products.h"
#include "kernels/avx2/parts.h"

namespace hadal::avx2 {
namespace {

template <QuantFormat format>
void AddFormat(KernelTable* table) {
  table->turned_matmul[BlockedIdx(format)] = BlockMatMul<format, TurnedRows>;
}

}  // namespace

void AddTurnedProducts256(KernelTable* table) {
  AddFormat<QuantFormat::kQ2_K>(table);
  AddFormat<QuantFormat::kQ3_K>(table);
  AddFormat<QuantFormat::kQ4_K>(table);
  AddFormat<QuantFormat::kQ5_K>(table);
  AddFormat<QuantFormat::kQ6_K>(table);
  AddFormat<QuantFormat::kIq4Xs>(table);
}

}  // namespace hadal::avx2
