#include "sys/read_probe.h"

#include <chrono>

#include <gtest/gtest.h>

namespace hadal {
namespace {

TEST(ReadProbe, ReadsAboutWhatWasAskedFor) {
  ThreadPool pool(2);
  ReadProbe probe(int64_t{5} << 20, &pool);
  EXPECT_GE(probe.bytes(), int64_t{5} << 20);
  EXPECT_LE(probe.bytes(), int64_t{6} << 20);
  const auto start = std::chrono::steady_clock::now();
  for (int pass = 0; pass < 100; ++pass) probe.Pass(&pool);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  // Half a gigabyte in less than half a millisecond would mean that nothing was read.
  EXPECT_GT(seconds.count(), 0.0005);
}

TEST(ReadProbe, IsEmptyWithoutMemory) {
  ThreadPool pool(1);
  EXPECT_EQ(ReadProbe(int64_t{1} << 61, &pool).bytes(), 0);
}

}  // namespace
}  // namespace hadal
