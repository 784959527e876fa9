#include "model/mtp_input.h"

namespace hadal {

void ProjectMtpInput(const MtpWeights& weights, float eps, ConstFloatMatrix embeddings,
                     ConstFloatMatrix hidden, FloatMatrix joined, FloatMatrix out,
                     Backend* backend) {
  backend->RmsNorm(embeddings, weights.enorm, eps, joined.Cols(0, embeddings.cols));
  backend->RmsNorm(hidden, weights.hnorm, eps, joined.Cols(embeddings.cols, hidden.cols));
  backend->MatMul(joined, weights.eh_proj, out);
}

}  // namespace hadal
