#include "convert/udu_factor.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "convert/float_weight.h"

namespace hadal {
namespace {

constexpr int kBlock = 64;

// Eliminates the columns [begin, end) of the square matrix h, last first, within themselves and for
// all rows above. Afterwards h[k][j] for j in the block and k < j is U_kj.
void EliminateBlock(int begin, int end, int size, float smallest, float* h, float* diagonal) {
  std::array<float, kBlock> scaled;
  for (int j = end - 1; j >= begin; --j) {
    const float pivot = std::max(h[int64_t{j} * size + j], smallest);
    diagonal[j] = pivot;
    for (int k = 0; k < j; ++k) h[int64_t{k} * size + j] /= pivot;
    for (int i = begin; i < j; ++i) {
      scaled[static_cast<size_t>(i - begin)] = h[int64_t{i} * size + j] * pivot;
    }
    // What column j explains of the block's earlier columns; those before the block follow in one
    // product.
    for (int k = 0; k < j; ++k) {
      float* row = h + int64_t{k} * size;
      const float u = row[j];
      for (int i = begin; i < j; ++i) row[i] -= u * scaled[static_cast<size_t>(i - begin)];
    }
  }
}

}  // namespace

UduFactor FactorUdu(std::vector<float> matrix, int size, float smallest, Backend* backend) {
  HADAL_CHECK(matrix.size() == static_cast<size_t>(size) * static_cast<size_t>(size));
  UduFactor factor;
  factor.size = size;
  factor.diagonal.resize(static_cast<size_t>(size));
  float* h = matrix.data();
  std::vector<float> u, scaled;
  for (int end = size; end > 0;) {
    const int begin = std::max(0, (end - 1) / kBlock * kBlock);
    const int width = end - begin;
    EliminateBlock(begin, end, size, smallest, h, factor.diagonal.data());
    // h[0..begin) x [0..begin) -= U D U^T over the block's columns.
    const auto count = static_cast<size_t>(begin) * static_cast<size_t>(width);
    u.resize(count);
    scaled.resize(count);
    for (int k = 0; k < begin; ++k) {
      for (int j = 0; j < width; ++j) {
        const float value = h[int64_t{k} * size + begin + j];
        u[static_cast<size_t>(k * int64_t{width} + j)] = value;
        scaled[static_cast<size_t>(k * int64_t{width} + j)] =
            -value * factor.diagonal[static_cast<size_t>(begin + j)];
      }
    }
    if (begin > 0) {
      backend->MatMulAdd({scaled.data(), begin, width, width}, FloatWeight(u.data(), begin, width),
                         {h, begin, begin, size});
    }
    end = begin;
  }
  // Transposed, without what is not U.
  factor.columns.assign(matrix.size(), 0.0f);
  for (int k = 0; k < size; ++k) {
    for (int j = k + 1; j < size; ++j) {
      factor.columns[static_cast<size_t>(int64_t{j} * size + k)] = h[int64_t{k} * size + j];
    }
  }
  return factor;
}

}  // namespace hadal
