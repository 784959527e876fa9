#include "text/unicode_classes.h"

#include <algorithm>
#include <vector>

namespace hadal {
namespace {

constexpr uint32_t kNumCodePoints = 0x110000;

std::vector<CodePointClass> SpreadRuns() {
  std::vector<CodePointClass> classes(kNumCodePoints);
  for (size_t i = 0; i < kCodePointRuns.size(); ++i) {
    const uint32_t end =
        i + 1 < kCodePointRuns.size() ? kCodePointRuns[i + 1].first : kNumCodePoints;
    std::fill(classes.begin() + kCodePointRuns[i].first, classes.begin() + end,
              kCodePointRuns[i].value);
  }
  return classes;
}

}  // namespace

const CodePointClass* CodePointClasses() {
  static const std::vector<CodePointClass> kClasses = SpreadRuns();
  return kClasses.data();
}

}  // namespace hadal
