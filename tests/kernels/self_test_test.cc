#include "kernels/self_test.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "kernels/dispatch.h"

namespace hadal {
namespace {

TEST(SelfTest, FindsNoFaultInTheSetsOfThisMachine) {
  for (const KernelTable* table : UsableKernels()) {
    EXPECT_EQ(FindFaultyKernel(*table, *UsableKernels().front()), "") << table->name;
  }
}

TEST(SelfTest, NamesTheKernelThatIsWrong) {
  KernelTable broken = BestKernels();
  broken.add_scaled = [](const float* x, float factor, int size, float* out) {
    for (int i = 0; i < size; ++i) out[i] += x[i] * factor * 1.000001f;
  };
  EXPECT_EQ(FindFaultyKernel(broken, *UsableKernels().front()), "add_scaled");

  broken = BestKernels();
  broken.matmul[static_cast<int>(QuantFormat::kF16)] =
      broken.matmul[static_cast<int>(QuantFormat::kBF16)];
  EXPECT_EQ(FindFaultyKernel(broken, *UsableKernels().front()), "matmul, known values");

  broken = BestKernels();
  broken.decode_row[static_cast<int>(QuantFormat::kF8Block128)] =
      [](const WeightRows& weights, int, float* out) { std::fill_n(out, weights.cols, 0.0f); };
  EXPECT_EQ(FindFaultyKernel(broken, *UsableKernels().front()), "decode_row, F8_E4M3");

  broken = BestKernels();
  broken.rounded_matmul[RoundedIdx(QuantFormat::kInt4Group)] = [](const RoundedMatMulArgs& args) {
    std::fill_n(args.out, args.num_outputs, 1.0f);
  };
  EXPECT_EQ(FindFaultyKernel(broken, *UsableKernels().front()),
            "rounded_matmul, INT4 in groups of 32");
}

}  // namespace
}  // namespace hadal
