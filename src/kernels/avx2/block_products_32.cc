// Products of types with blocks of 32 columns with rounded rows.
#include "kernels/avx2/block_products.h"
#include "kernels/avx2/parts.h"

namespace hadal::avx2 {
namespace {

template <QuantFormat format>
void AddFormat(KernelTable* table) {
  table->rounded_matmul[RoundedIdx(format)] = BlockMatMul<format, StoredRows>;
  table->turned_matmul[BlockedIdx(format)] = BlockMatMul<format, TurnedRows>;
}

}  // namespace

void AddBlockProducts32(KernelTable* table) {
  AddFormat<QuantFormat::kQ4_0>(table);
  AddFormat<QuantFormat::kQ4_1>(table);
  AddFormat<QuantFormat::kQ5_0>(table);
  AddFormat<QuantFormat::kQ5_1>(table);
  AddFormat<QuantFormat::kQ8_0>(table);
  AddFormat<QuantFormat::kIq4Nl>(table);
}

}  // namespace hadal::avx2
