// The factors of a symmetric positive definite matrix that tell how rounding errors of earlier
// columns are answered by later ones.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "tensor/matrix.h"

namespace hadal {

// H = U D U^T with U upper triangular of unit diagonal and D diagonal. For errors e of a row of
// weights e H e^T = sum over j of D_j * (e_j + sum over k < j of e_k U_kj)^2.
struct UduFactor {
  int size = 0;
  std::vector<float> diagonal;  // [size]
  // [size, size]: row j holds column j of U, so that what column j needs lies together; its
  // diagonal and what lies behind are 0.
  std::vector<float> columns;
};

// `matrix` is used up. A pivot that rounding made smaller than `smallest` counts as that.
UduFactor FactorUdu(std::vector<float> matrix, int size, float smallest, Backend* backend);

}  // namespace hadal
