#include "evaluate/stored_logits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

using testing::HasSubstr;

const std::vector<TokenWindow> kWindows = {{{1}, {2}, {3}}, {{4}, {5}}};

std::string Store(const TempDir& dir) {
  const std::string path = dir.File("logits.safetensors");
  Result<StoredLogitsWriter> writer = StoredLogitsWriter::Create(path, kWindows, 2);
  EXPECT_TRUE(writer.ok()) << writer.status().message();
  EXPECT_TRUE(writer->Add(std::vector<float>{1, 2, 3, 4, 5, 6}).ok());
  EXPECT_TRUE(writer->Add(std::vector<float>{7, 8, 9, 10}).ok());
  EXPECT_TRUE(writer->Finish().ok());
  return path;
}

TEST(StoredLogits, ComeBackWindowByWindow) {
  const TempDir dir;
  Result<StoredLogits> stored = StoredLogits::Open(Store(dir), kWindows);
  ASSERT_TRUE(stored.ok()) << stored.status().message();
  EXPECT_EQ(stored->vocab_size(), 2);
  std::vector<float> first(6), second(4);
  stored->ReadNext(first);
  stored->ReadNext(second);
  EXPECT_EQ(first, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(second, (std::vector<float>{7, 8, 9, 10}));
}

TEST(StoredLogits, OfAnotherTextAreRefused) {
  const TempDir dir;
  const std::string path = Store(dir);
  for (const std::vector<TokenWindow>& others : std::vector<std::vector<TokenWindow>>{
           {{{1}, {2}, {3}}, {{4}, {6}}}, {{{1}, {2}, {3}, {4}, {5}}}, {{{1}, {2}}}}) {
    EXPECT_THAT(StoredLogits::Open(path, others).status().message(),
                HasSubstr("in the same windows, found others"));
  }
}

TEST(StoredLogits, AnotherFileIsRefused) {
  const TempDir dir;
  const std::string path = dir.File("a.safetensors");
  const std::vector<float> values = {1.0f};
  ASSERT_TRUE(
      WriteSafetensors(path, {{{"logits", DType::kF32, {1}}, std::as_bytes(std::span(values))}})
          .ok());
  EXPECT_EQ(StoredLogits::Open(path, kWindows).status().code(), StatusCode::kCorrupt);
}

}  // namespace
}  // namespace hadal
