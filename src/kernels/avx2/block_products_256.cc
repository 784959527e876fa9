// Products of types with blocks of 256 columns with rounded rows; those of turned weights are in a
// source of their own, because each of the two takes long to compile.
#include "kernels/avx2/block_products.h"
#include "kernels/avx2/parts.h"

namespace hadal::avx2 {
namespace {

template <QuantFormat format>
void AddFormat(KernelTable* table) {
  table->rounded_matmul[RoundedIdx(format)] = BlockMatMul<format, StoredRows>;
}

}  // namespace

void AddBlockProducts256(KernelTable* table) {
  AddFormat<QuantFormat::kQ2_K>(table);
  AddFormat<QuantFormat::kQ3_K>(table);
  AddFormat<QuantFormat::kQ4_K>(table);
  AddFormat<QuantFormat::kQ5_K>(table);
  AddFormat<QuantFormat::kQ6_K>(table);
  AddFormat<QuantFormat::kIq4Xs>(table);
}

}  // namespace hadal::avx2
