#include "sys/mapping_registry.h"

#include <csignal>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sys/mapped_file.h"
#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

// Adds up all bytes, so that every page is touched.
int Touch(const MappedFile& file) {
  int sum = 0;
  for (std::byte byte : file.bytes()) sum += static_cast<int>(byte);
  return sum;
}

class MappingFaultTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, int64_t size) const {
    return dir_.Write(name, std::string(static_cast<size_t>(size), 'x'));
  }
  TempDir dir_;
};

using MappingFaultDeathTest = MappingFaultTest;

// Case C133.
TEST_F(MappingFaultDeathTest, NamesTheFileThatWasTruncatedWhileInUse) {
  const std::string other = Write("other", 100'000);
  const std::string path = Write("weights", 100'000);
  const MappedFile before = MappedFile::Open(other).value();
  const MappedFile file = MappedFile::Open(path).value();
  ASSERT_EQ(truncate(path.c_str(), 5000), 0);
  EXPECT_EXIT(
      {
        InstallMappingFaultHandler();
        _exit(Touch(before) > 0 && Touch(file) > 0 ? 0 : 3);
      },
      ::testing::ExitedWithCode(1),
      "^hadal: error: .*/weights: size: expected the 100000 bytes that it had when it was opened, "
      "found 5000: the file was truncated while in use\n$");
}

TEST_F(MappingFaultDeathTest, LeavesOtherBusErrorsAlone) {
  const std::string path = Write("unknown", 100'000);
  const int fd = open(path.c_str(), O_RDONLY);
  const auto* data =
      static_cast<const volatile char*>(mmap(nullptr, 100'000, PROT_READ, MAP_SHARED, fd, 0));
  ASSERT_EQ(truncate(path.c_str(), 0), 0);
  EXPECT_EXIT(
      {
        InstallMappingFaultHandler();
        _exit(data[50'000] == 'x' ? 0 : 3);
      },
      ::testing::KilledBySignal(SIGBUS), "");
  close(fd);
}

TEST_F(MappingFaultDeathTest, ForgetsAFileThatWasClosed) {
  const std::string path = Write("closed", 100'000);
  for (int round = 0; round < 100; ++round) {
    EXPECT_EQ(Touch(MappedFile::Open(path).value()), 100'000 * 'x');
  }
  const std::string second = Write("second", 50'000);
  const MappedFile file = MappedFile::Open(second).value();
  ASSERT_EQ(truncate(second.c_str(), 0), 0);
  EXPECT_EXIT(
      {
        InstallMappingFaultHandler();
        _exit(Touch(file));
      },
      ::testing::ExitedWithCode(1), "/second: size: expected the 50000 bytes");
}

TEST_F(MappingFaultTest, AFileThatWasReadSurvivesTruncation) {
  const std::string path = Write("read", 100'000);
  const MappedFile file = MappedFile::Open(path, FileAccess::kRead).value();
  ASSERT_EQ(truncate(path.c_str(), 0), 0);
  EXPECT_EQ(Touch(file), 100'000 * 'x');
}

}  // namespace
}  // namespace hadal
