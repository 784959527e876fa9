#include "sys/memory.h"

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

namespace hadal {
namespace {

TEST(Memory, IsZeroedAndAligned) {
  for (int64_t bytes : {int64_t{1}, int64_t{4097}, int64_t{3} << 20}) {
    auto* data = static_cast<unsigned char*>(AllocatePages(bytes));
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    EXPECT_TRUE(std::all_of(data, data + bytes, [](unsigned char byte) { return byte == 0; }));
    std::fill_n(data, bytes, static_cast<unsigned char>(1));
    FreePages(data, bytes);
  }
}

TEST(Memory, IsNullWhenTheSystemHasNotEnough) {
  EXPECT_EQ(AllocatePages(int64_t{1} << 62), nullptr);
}

}  // namespace
}  // namespace hadal
