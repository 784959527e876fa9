// How rows that meet grouped weights are rounded: the codes of all columns as bytes, then for every
// group two words, minus the sum of its codes and 0, and its scale. With the words, a product takes
// away what the weights' codes are moved by to have no sign.
#pragma once

#include <cstdint>

namespace hadal::avx512 {
namespace {

constexpr int kTailBytes = 8;  // of a group
constexpr int kTailScale = 4;  // where its scale begins

}  // namespace
}  // namespace hadal::avx512
