#include "base/checksum.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace hadal {
namespace {

std::vector<std::byte> Sample(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 37 + i / 256);
  return bytes;
}

TEST(Checksum, EveryChangedByteShows) {
  const std::vector<std::byte> bytes = Sample(203);
  std::set<uint64_t> sums = {Checksum(bytes)};
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> changed = bytes;
    changed[i] ^= std::byte{1};
    sums.insert(Checksum(changed));
  }
  EXPECT_EQ(sums.size(), 204u);
}

TEST(Checksum, PlacesAndLengthsCount) {
  std::set<uint64_t> sums;
  for (size_t size = 0; size < 100; ++size) sums.insert(Checksum(std::vector<std::byte>(size)));
  EXPECT_EQ(sums.size(), 100u);
  std::vector<std::byte> swapped = Sample(128);
  std::swap_ranges(swapped.begin(), swapped.begin() + 32, swapped.begin() + 32);
  EXPECT_NE(Checksum(swapped), Checksum(Sample(128)));
}

// Files that were written keep their sums.
TEST(Checksum, IsWhatItWas) { EXPECT_EQ(Checksum(Sample(100)), Checksum(Sample(100))); }

}  // namespace
}  // namespace hadal
