#include "apps/machine_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hadal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

MachineReport GoodMachine() {
  MachineReport report;
  report.cpu = "some";
  report.num_cores = 2;
  report.kernels = {{"reference", true, "", 1e9}, {"avx2", true, "", 1e11}};
  report.memory_bytes = int64_t{24} << 30;
  report.available_bytes = int64_t{20} << 30;
  report.huge_pages = "madvise";
  report.read_bytes_per_s = 20e9;
  report.read_bytes_per_s_single = 12e9;
  return report;
}

TEST(AdviceFor, HasNothingToSayOfAGoodMachine) { EXPECT_THAT(AdviceFor(GoodMachine()), IsEmpty()); }

TEST(AdviceFor, NamesAKernelThatIsWrong) {
  MachineReport report = GoodMachine();
  report.kernels[1].faulty_kernel = "matmul, F16";
  EXPECT_THAT(AdviceFor(report), ElementsAre(HasSubstr("avx2 computes matmul, F16 wrongly")));
}

TEST(AdviceFor, MissesVectorKernels) {
  MachineReport report = GoodMachine();
  report.kernels[1] = {"avx2", false, "", 0};
  EXPECT_THAT(AdviceFor(report), ElementsAre(HasSubstr("AVX2, FMA and F16C")));
}

TEST(AdviceFor, SaysHowToTurnHugePagesOn) {
  MachineReport report = GoodMachine();
  report.huge_pages = "never";
  EXPECT_THAT(AdviceFor(report), ElementsAre(HasSubstr("echo madvise >")));
}

TEST(AdviceFor, WarnsOfLittleMemory) {
  MachineReport report = GoodMachine();
  report.available_bytes = 300'000'000;
  EXPECT_THAT(AdviceFor(report), ElementsAre(HasSubstr("300 MB")));
}

TEST(AdviceFor, SeesCoresThatDoNotHelpEachOther) {
  MachineReport report = GoodMachine();
  report.read_bytes_per_s_single = 19e9;
  EXPECT_THAT(AdviceFor(report), ElementsAre(HasSubstr("hardly faster than one")));
  report.num_cores = 1;
  EXPECT_THAT(AdviceFor(report), IsEmpty());
}

TEST(ExamineMachine, FindsSoundKernelsHere) {
  const MachineReport report = ExamineMachine();
  ASSERT_FALSE(report.kernels.empty());
  for (const KernelSetReport& set : report.kernels) EXPECT_EQ(set.faulty_kernel, "") << set.name;
  EXPECT_GT(report.read_bytes_per_s, 0);
}

}  // namespace
}  // namespace hadal
