// Weights copied out of the mapped files into memory of the backend. Files are mapped in pages of 4
// KB; the backend's own memory comes in huge pages, which are read a sixth faster, and a file that
// changes under way does no harm. The price is the time of one copy, and memory that the system
// cannot take back.
#pragma once

#include "backend/backend.h"
#include "base/status.h"
#include "formats/checkpoint.h"
#include "model/weight_store.h"

namespace hadal {

// Bytes of all matrices, each once; scales of FP8 blocks stay where they are.
int64_t ResidentBytes(const ModelWeights& weights);

// Copies every matrix and points `weights` at the copies, layer after layer; pages of `checkpoint`
// are given back on the way, so that nothing is in memory twice. kResourceExhausted when memory is
// short; then nothing has changed.
Status MakeResident(const Checkpoint& checkpoint, Backend* backend, ModelWeights* weights);

}  // namespace hadal
