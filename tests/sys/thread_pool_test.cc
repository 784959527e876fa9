#include "sys/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/alloc_guard.h"

namespace hadal {
namespace {

class ThreadPoolTest : public ::testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, RunsEveryIndexExactlyOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.num_threads(), GetParam());
  for (int count : {0, 1, 2, 3, 7, 64, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
    std::atomic<int> wrong_workers{0};
    pool.ParallelFor(count, [&](int index, int worker) {
      runs[static_cast<size_t>(index)].fetch_add(1);
      if (worker < 0 || worker >= GetParam()) wrong_workers.fetch_add(1);
    });
    for (int index = 0; index < count; ++index) {
      ASSERT_EQ(runs[static_cast<size_t>(index)].load(), 1) << index << " of " << count;
    }
    EXPECT_EQ(wrong_workers.load(), 0);
  }
}

TEST_P(ThreadPoolTest, PassesOverWhatIsLeftOnceTheWatchedFlagIsSet) {
  ThreadPool pool(GetParam());
  std::atomic<bool> stop{false};
  std::atomic<int> num_runs{0};
  const auto run = [&](int stop_at) {
    num_runs = 0;
    pool.ParallelForUntilStopped(1000, [&](int, int) {
      if (num_runs.fetch_add(1) + 1 == stop_at) stop = true;
    });
    return num_runs.load();
  };
  EXPECT_EQ(run(10), 1000);  // nothing is watched
  stop = false;
  pool.WatchStop(&stop);
  EXPECT_EQ(run(0), 1000);
  const int num_before = run(10);
  EXPECT_GE(num_before, 10);
  EXPECT_LT(num_before, 10 + GetParam());  // what others had begun
  EXPECT_EQ(run(0), 0);
  pool.WatchStop(nullptr);
  EXPECT_EQ(run(0), 1000);
}

TEST_P(ThreadPoolTest, GivesAWorkerOneIndexAtATime) {
  ThreadPool pool(GetParam());
  std::vector<int> sums(static_cast<size_t>(GetParam()));  // written without a lock
  for (int loop = 0; loop < 50; ++loop) {
    pool.ParallelFor(200,
                     [&](int index, int worker) { sums[static_cast<size_t>(worker)] += index; });
  }
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), 0), 50 * 199 * 200 / 2);
}

// Loops that follow each other closely: a worker that is late for one must not run the next one's
// indices with the first one's body.
TEST_P(ThreadPoolTest, KeepsManyShortLoopsApart) {
  ThreadPool pool(GetParam());
  for (int loop = 0; loop < 5000; ++loop) {
    const int count = 2 + loop % 5;
    std::atomic<int> sum{0};
    pool.ParallelFor(count, [&sum, loop](int index, int) { sum.fetch_add(loop + index); });
    ASSERT_EQ(sum.load(), loop * count + count * (count - 1) / 2) << loop;
  }
}

TEST_P(ThreadPoolTest, ShowsTheCallerWhatTheWorkersWrote) {
  ThreadPool pool(GetParam());
  std::vector<int> values(333);
  for (int loop = 1; loop < 200; ++loop) {
    pool.ParallelFor(333, [&](int index, int) { values[static_cast<size_t>(index)] += loop; });
  }
  for (int value : values) ASSERT_EQ(value, 199 * 200 / 2);
}

TEST_P(ThreadPoolTest, WakesWorkersThatFellAsleep) {
  ThreadPool pool(GetParam());
  for (int loop = 0; loop < 5; ++loop) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> sum{0};
    pool.ParallelFor(100, [&](int index, int) { sum.fetch_add(index); });
    ASSERT_EQ(sum.load(), 4950);
  }
}

TEST_P(ThreadPoolTest, AllocatesNothingInALoop) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> per_index(64);
  pool.ParallelFor(64, [&](int, int) {});
  const AllocGuard caller;
  pool.ParallelFor(64, [&](int index, int) {
    const AllocGuard inside;
    per_index[static_cast<size_t>(index)] = inside.count();
  });
  EXPECT_EQ(caller.count(), 0);
  for (int64_t count : per_index) EXPECT_EQ(count, 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, ::testing::Values(1, 2, 3, 4, 8));

// An idle engine used whole cores. Workers that do not sleep keep every window busy; those that do
// may need a while to get there on a machine that does not let them run, hence the many windows.
TEST(ThreadPool, CostsLessThanTwoPercentOfACoreWhenIdle) {
  ThreadPool pool(4);
  pool.ParallelFor(64, [](int, int) {});
  double least = 1;
  for (int window = 0; window < 100 && least >= 0.02; ++window) {
    const std::clock_t start = std::clock();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const double busy = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    least = std::min(least, busy / 0.3);
  }
  EXPECT_LT(least, 0.02);
}

TEST(ThreadPool, EndsWhileItsWorkersSpinOrSleep) {
  for (int round = 0; round < 100; ++round) {
    ThreadPool pool(4);
    pool.ParallelFor(8, [](int, int) {});
  }
  ThreadPool sleeping(4);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

}  // namespace
}  // namespace hadal
