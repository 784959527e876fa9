// Products of turned weights of types with blocks of 256 columns with rounded rows.
#include "kernels/avx2/block_products.h"
#include "kernels/avx2/parts.h"

namespace hadal::avx2 {

void MultiplyTurned256(QuantFormat format, const RoundedMatMulArgs& args) {
  switch (format) {
    case QuantFormat::kQ2_K:
      return BlockMatMul<QuantFormat::kQ2_K, TurnedRows>(args);
    case QuantFormat::kQ3_K:
      return BlockMatMul<QuantFormat::kQ3_K, TurnedRows>(args);
    case QuantFormat::kQ4_K:
      return BlockMatMul<QuantFormat::kQ4_K, TurnedRows>(args);
    case QuantFormat::kQ5_K:
      return BlockMatMul<QuantFormat::kQ5_K, TurnedRows>(args);
    case QuantFormat::kQ6_K:
      return BlockMatMul<QuantFormat::kQ6_K, TurnedRows>(args);
    case QuantFormat::kIq4Xs:
      return BlockMatMul<QuantFormat::kIq4Xs, TurnedRows>(args);
    default:
      return;
  }
}

}  // namespace hadal::avx2
