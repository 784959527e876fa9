// How rows that meet blocked weights are rounded.
#pragma once

#include "kernels/avx2/blocks.h"

namespace hadal::avx2 {
namespace {

// A rounded row that meets a blocked weight: for every 32 columns their codes as bytes, the scale,
// and two sums, of each half for types with a scale for 16 columns, else the first of all 32. They
// are what corrects an offset or a minimum: for types with an offset two words, the sums of the
// codes whose column % 4 is 0 or 1 and 2 or 3; for the others a float, the sum times the scale.
constexpr int kRunScaleOffset = kRun;
constexpr int kRunSumsOffset = kRun + 4;
constexpr int kRoundedRunBytes = kRun + 12;

}  // namespace
}  // namespace hadal::avx2
