#include "hub/retry.h"

#include <chrono>

#include <gtest/gtest.h>

namespace hadal {
namespace {

double Seconds(const auto& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(Retry, GivesUpAfterFailuresInARow) {
  Retry retry({.max_failures = 3, .first_wait_s = 0}, 1, nullptr);
  EXPECT_TRUE(retry.WaitForNext(0));
  EXPECT_TRUE(retry.WaitForNext(0));
  EXPECT_FALSE(retry.WaitForNext(0));
}

TEST(Retry, CountsAnewAfterProgress) {
  Retry retry({.max_failures = 2, .first_wait_s = 0}, 1, nullptr);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(retry.WaitForNext(0));
    retry.NoteProgress();
  }
  EXPECT_TRUE(retry.WaitForNext(0));
  EXPECT_FALSE(retry.WaitForNext(0));
}

TEST(Retry, WaitsLongerEachTimeAndAsLongAsTheHubAsks) {
  Retry retry({.max_failures = 9, .first_wait_s = 0.1}, 1, nullptr);
  EXPECT_GE(Seconds([&] { retry.WaitForNext(0); }), 0.07);
  EXPECT_GE(Seconds([&] { retry.WaitForNext(0); }), 0.14);
  Retry asked({.first_wait_s = 0}, 1, nullptr);
  EXPECT_GE(Seconds([&] { asked.WaitForNext(0.2); }), 0.2);
}

TEST(Retry, EndsAtOnceWhenEverythingStops) {
  const std::atomic<bool> stop = true;
  Retry retry({.first_wait_s = 1000}, 1, &stop);
  EXPECT_FALSE(retry.WaitForNext(1000));
}

}  // namespace
}  // namespace hadal
