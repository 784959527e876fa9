// What enters the layer of the multi-token-prediction module. DeepSeek-V3 report, 2.2;
// specification, 5.1.
#pragma once

#include "backend/backend.h"
#include "model/weight_store.h"
#include "tensor/matrix.h"

namespace hadal {

// out = eh_proj [norm(embeddings) ; norm(hidden)]. The embedding comes first and the hidden state
// second, unlike in the report's formula: the published weights expect it so.
//   embeddings, out [tokens, hidden_size], may be the same; hidden [tokens, hidden_size]; joined
//   [tokens, 2 * hidden_size]: scratch
void ProjectMtpInput(const MtpWeights& weights, float eps, ConstFloatMatrix embeddings,
                     ConstFloatMatrix hidden, FloatMatrix joined, FloatMatrix out,
                     Backend* backend);

}  // namespace hadal
