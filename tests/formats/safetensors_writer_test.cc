#include "formats/safetensors_writer.h"

#include <cstring>
#include <filesystem>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/checkpoint.h"
#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

using testing::HasSubstr;

std::span<const std::byte> BytesOf(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

TEST(SafetensorsWriter, WhatIsWrittenInPiecesIsReadBack) {
  const TempDir dir;
  std::vector<float> logits(12);
  std::iota(logits.begin(), logits.end(), 1.5f);
  const std::vector<std::byte> codes = {std::byte{7}, std::byte{9}, std::byte{255}};
  const std::string path = dir.File("out.safetensors");
  Result<SafetensorsWriter> writer = SafetensorsWriter::Create(
      path,
      {{"codes", DType::kU8, {3}}, {"logits", DType::kF32, {4, 3}}, {"none", DType::kF16, {0, 5}}},
      {{"format", "pt"}});
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  ASSERT_TRUE(writer->Write(1, 24, BytesOf(logits).subspan(24)).ok());
  ASSERT_TRUE(writer->Write(0, 0, codes).ok());
  ASSERT_TRUE(writer->Write(1, 0, BytesOf(logits).subspan(0, 24)).ok());
  ASSERT_TRUE(writer->Finish().ok());

  const auto checkpoint = Checkpoint::Open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  ASSERT_EQ((*checkpoint)->tensors().size(), 3u);
  const TensorInfo* read = (*checkpoint)->Find("logits");
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->shape, (std::vector<int64_t>{4, 3}));
  ASSERT_EQ(read->bytes.size(), 48u);
  EXPECT_EQ(std::memcmp(read->bytes.data(), logits.data(), 48), 0);
  EXPECT_EQ((*checkpoint)->Find("codes")->bytes[2], std::byte{255});
  EXPECT_EQ((*checkpoint)->Find("none")->num_elements(), 0);
}

TEST(SafetensorsWriter, AFileThatIsNotFinishedDoesNotAppear) {
  const TempDir dir;
  const std::string path = dir.File("out.safetensors");
  {
    Result<SafetensorsWriter> writer = SafetensorsWriter::Create(path, {{"a", DType::kF32, {2}}});
    ASSERT_TRUE(writer.ok());
    const std::vector<float> half = {1.0f};
    ASSERT_TRUE(writer->Write(0, 0, BytesOf(half)).ok());
    const Status status = writer->Finish();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("expected 8 bytes, found 4"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(SafetensorsWriter, RefusesWhatTheFormatCannotHold) {
  const TempDir dir;
  const std::string path = dir.File("out.safetensors");
  const auto code = [&](const std::vector<SafetensorsSpec>& specs) {
    return SafetensorsWriter::Create(path, specs).status().code();
  };
  EXPECT_EQ(code({{"a", DType::kF32, {1}}, {"a", DType::kF32, {1}}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{"__metadata__", DType::kF32, {1}}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{"a", DType::kF32, {-1}}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{"a", DType::kF32, {int64_t{1} << 32, int64_t{1} << 32}}}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{"a", DType::kF4, {3}}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(SafetensorsWriter::Create(dir.File("no/such/folder"), {}).status().code(),
            StatusCode::kIo);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

}  // namespace
}  // namespace hadal
