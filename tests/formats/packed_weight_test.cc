// The rules of 7.6 on matrices made by hand: which bits are which element, zero point and group.
#include "formats/packed_weight.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/ggml_blocks.h"
#include "formats/safetensors_writer.h"
#include "formats/weight_unpacker.h"
#include "tensor/quantize.h"
#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

using testing::HasSubstr;

struct Tensor {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};

template <class T>
Tensor Make(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {dtype, std::move(shape), {bytes.begin(), bytes.end()}};
}

class PackedWeights : public testing::Test {
 protected:
  void Write(const std::map<std::string, Tensor>& tensors) {
    std::vector<SafetensorsSpec> specs;
    for (const auto& [name, tensor] : tensors)
      specs.push_back({"m." + name, tensor.dtype, tensor.shape});
    const std::string path = dir_.path() + "/model.safetensors";
    auto writer = SafetensorsWriter::Create(path, specs);
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    int idx = 0;
    for (const auto& [name, tensor] : tensors)
      ASSERT_TRUE(writer->Write(idx++, 0, tensor.bytes).ok());
    ASSERT_TRUE(writer->Finish().ok());
    auto opened = Checkpoint::Open(path);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    checkpoint_ = std::move(opened).value();
  }

  std::string Refusal(const PackedScheme& scheme, int rows, int cols) {
    return FindPackedWeight(*checkpoint_, scheme, "m", rows, cols).status().message();
  }

  // The element that every form must give.
  void ExpectElements(const PackedScheme& scheme, int rows, int cols,
                      const std::function<float(int row, int col)>& element, QuantFormat format) {
    const auto packed = FindPackedWeight(*checkpoint_, scheme, "m", rows, cols);
    ASSERT_TRUE(packed.ok()) << packed.status().message();
    ASSERT_TRUE(packed->has_value());
    WeightUnpacker unpacker(2);
    const auto unpacked = unpacker.Unpack(**packed, /*wants_floats=*/false);
    ASSERT_TRUE(unpacked.ok()) << unpacked.status().message();
    EXPECT_EQ(unpacked->matrix.format, format);
    std::vector<float> out(static_cast<size_t>(cols));
    for (int row = 0; row < rows; ++row) {
      (*packed)->DecodeRow(row, out);
      for (int col = 0; col < cols; ++col) {
        ASSERT_EQ(out[static_cast<size_t>(col)], element(row, col)) << row << " " << col;
        ASSERT_EQ(ElementOf(unpacked->matrix, row, col), element(row, col)) << row << " " << col;
      }
    }
  }

  static float ElementOf(const QuantizedMatrix& matrix, int row, int col) {
    if (matrix.format != QuantFormat::kQ8_0) return ElementAt(matrix, row, col);
    const std::byte* block = matrix.data + (int64_t{row} * matrix.cols + col) / 32 * 34;
    std::vector<float> values(32);
    DecodeGgmlBlocks(GgmlType::kQ8_0, {block, 34}, values);
    return values[static_cast<size_t>(col % 32)];
  }

  // Codes, zero points and scales that tell their place.
  static int Code(int row, int col, int bits) {
    return (7 * row + 3 * col + row * col) & ((1 << bits) - 1);
  }
  static int Zero(int row, int group) { return (5 * row + 11 * group + 3) & 15; }
  static float Scale(int row, int group) {
    return 0.25f * static_cast<float>(1 + (row + 3 * group) % 9);
  }

  static std::vector<uint16_t> HalfScales(int outer, int inner, bool is_by_row) {
    std::vector<uint16_t> scales;
    for (int a = 0; a < outer; ++a) {
      for (int b = 0; b < inner; ++b)
        scales.push_back(FloatToFp16(is_by_row ? Scale(a, b) : Scale(b, a)));
    }
    return scales;
  }

  TempDir dir_;
  std::unique_ptr<Checkpoint> checkpoint_;
};

constexpr int kRows = 24, kCols = 96, kGroup = 32, kGroups = 3;

std::vector<uint32_t> Words(int num, const std::function<uint32_t(int word, int place)>& code,
                            int bits) {
  std::vector<uint32_t> words;
  for (int word = 0; word < num; ++word) {
    uint32_t value = 0;
    for (int place = 0; place < 32 / bits; ++place) value |= code(word, place) << (bits * place);
    words.push_back(value);
  }
  return words;
}

TEST_F(PackedWeights, CompressedTensorsWithZeroPoints) {
  const auto codes = Words(
      kRows * kCols / 8,
      [](int w, int p) {
        return static_cast<uint32_t>(Code(w / (kCols / 8), w % (kCols / 8) * 8 + p, 4));
      },
      4);
  const auto zeros = Words(
      kRows / 8 * kGroups,
      [](int w, int p) { return static_cast<uint32_t>(Zero(w / kGroups * 8 + p, w % kGroups)); },
      4);
  Write({{"weight_packed", Make(DType::kI32, {kRows, kCols / 8}, codes)},
         {"weight_scale", Make(DType::kF16, {kRows, kGroups}, HalfScales(kRows, kGroups, true))},
         {"weight_zero_point", Make(DType::kI32, {kRows / 8, kGroups}, zeros)},
         {"weight_shape", Make<int64_t>(DType::kI64, {2}, {kRows, kCols})}});
  ExpectElements(
      {.method = PackedMethod::kCompressedTensors}, kRows, kCols,
      [](int row, int col) {
        return static_cast<float>(Code(row, col, 4) - Zero(row, col / kGroup)) *
               Scale(row, col / kGroup);
      },
      QuantFormat::kInt4Group);
  EXPECT_THAT(Refusal({.method = PackedMethod::kCompressedTensors}, kRows, kCols + 32),
              HasSubstr("m.weight_packed"));
}

TEST_F(PackedWeights, CompressedTensorsOfEightBits) {
  const auto code = [](int row, int col) { return 1 + Code(row, col, 7); };  // never the lowest
  const auto codes = Words(
      kRows * kCols / 4,
      [&](int w, int p) {
        return static_cast<uint32_t>(code(w / (kCols / 4), w % (kCols / 4) * 4 + p));
      },
      8);
  Write({{"weight_packed", Make(DType::kI32, {kRows, kCols / 4}, codes)},
         {"weight_scale", Make(DType::kF16, {kRows, 1}, HalfScales(kRows, 1, true))}});
  ExpectElements(
      {.method = PackedMethod::kCompressedTensors}, kRows, kCols,
      [&](int row, int col) { return static_cast<float>(code(row, col) - 128) * Scale(row, 0); },
      QuantFormat::kInt8Group);
}

TEST_F(PackedWeights, TheLowestCodeOfEightBitsHasNoTilesButBlocks) {
  std::vector<int8_t> codes(static_cast<size_t>(kRows * kCols), 5);
  codes[100] = -128;
  Write({{"weight", Make(DType::kI8, {kRows, kCols}, codes)},
         {"weight_scale", Make(DType::kF16, {kRows, 1}, HalfScales(kRows, 1, true))}});
  ExpectElements(
      {.method = PackedMethod::kCompressedTensors}, kRows, kCols,
      [&](int row, int col) {
        return static_cast<float>(codes[static_cast<size_t>(row * kCols + col)]) * Scale(row, 0);
      },
      QuantFormat::kQ8_0);
}

std::map<std::string, Tensor> Gptq(int zero_less, const std::vector<int32_t>& groups,
                                   const std::vector<uint16_t>& scales) {
  const auto code = [](int row, int col) { return (7 * row + 3 * col + row * col) & 15; };
  const auto zero = [](int row, int group) { return (5 * row + 11 * group + 3) & 15; };
  const auto codes = Words(
      kCols / 8 * kRows,
      [&](int w, int p) { return static_cast<uint32_t>(code(w % kRows, w / kRows * 8 + p)); }, 4);
  const auto zeros = Words(
      kGroups * kRows / 8,
      [&](int w, int p) {
        return static_cast<uint32_t>((zero(w % (kRows / 8) * 8 + p, w / (kRows / 8)) - zero_less) &
                                     15);
      },
      4);
  return {{"qweight", Make(DType::kI32, {kCols / 8, kRows}, codes)},
          {"qzeros", Make(DType::kI32, {kGroups, kRows / 8}, zeros)},
          {"scales", Make(DType::kF16, {kGroups, kRows}, scales)},
          {"g_idx", Make(DType::kI32, {kCols}, groups)}};
}

std::vector<int32_t> InOrder() {
  std::vector<int32_t> groups;
  for (int col = 0; col < kCols; ++col) groups.push_back(col / kGroup);
  return groups;
}

TEST_F(PackedWeights, GptqOfBothVersions) {
  for (const bool is_v1 : {true, false}) {
    Write(Gptq(is_v1 ? 1 : 0, InOrder(), HalfScales(kGroups, kRows, false)));
    ExpectElements(
        {.method = PackedMethod::kGptq, .group_size = kGroup, .stores_zero_less_one = is_v1}, kRows,
        kCols,
        [](int row, int col) {
          return static_cast<float>(Code(row, col, 4) - Zero(row, col / kGroup)) *
                 Scale(row, col / kGroup);
        },
        QuantFormat::kInt4Group);
  }
}

TEST_F(PackedWeights, GptqInTheOrderOfActivations) {
  std::vector<int32_t> groups = InOrder();
  std::shuffle(groups.begin(), groups.end(), std::mt19937(3));
  Write(Gptq(1, groups, HalfScales(kGroups, kRows, false)));
  ExpectElements(
      {.method = PackedMethod::kGptq, .group_size = kGroup}, kRows, kCols,
      [&](int row, int col) {
        const int group = groups[static_cast<size_t>(col)];
        return static_cast<float>(Code(row, col, 4) - Zero(row, group)) * Scale(row, group);
      },
      QuantFormat::kF32);
  groups[5] = kGroups;
  Write(Gptq(1, groups, HalfScales(kGroups, kRows, false)));
  EXPECT_THAT(Refusal({.method = PackedMethod::kGptq, .group_size = kGroup}, kRows, kCols),
              HasSubstr("m.g_idx\": expected groups from 0 to 2, found 3"));
}

TEST_F(PackedWeights, ABiasOfZerosIsAcceptedAndAnyOtherRefused) {
  auto tensors = Gptq(1, InOrder(), HalfScales(kGroups, kRows, false));
  std::vector<uint16_t> bias(kRows, 0);
  tensors["bias"] = Make(DType::kF16, {kRows}, bias);
  Write(tensors);
  EXPECT_EQ(Refusal({.method = PackedMethod::kGptq, .group_size = kGroup}, kRows, kCols), "");
  bias[3] = 1;
  tensors["bias"] = Make(DType::kF16, {kRows}, bias);
  Write(tensors);
  EXPECT_THAT(Refusal({.method = PackedMethod::kGptq, .group_size = kGroup}, kRows, kCols),
              HasSubstr("m.bias"));
}

TEST_F(PackedWeights, AwqMixesTheColumnsOfAWord) {
  constexpr int kOrder[8] = {0, 2, 4, 6, 1, 3, 5, 7};
  const auto codes = Words(
      kCols * kRows / 8,
      [&](int w, int p) {
        return static_cast<uint32_t>(Code(w % (kRows / 8) * 8 + kOrder[p], w / (kRows / 8), 4));
      },
      4);
  const auto zeros = Words(
      kGroups * kRows / 8,
      [&](int w, int p) {
        return static_cast<uint32_t>(Zero(w % (kRows / 8) * 8 + kOrder[p], w / (kRows / 8)));
      },
      4);
  Write({{"qweight", Make(DType::kI32, {kCols, kRows / 8}, codes)},
         {"qzeros", Make(DType::kI32, {kGroups, kRows / 8}, zeros)},
         {"scales", Make(DType::kF16, {kGroups, kRows}, HalfScales(kGroups, kRows, false))}});
  ExpectElements(
      {.method = PackedMethod::kAwq, .group_size = kGroup}, kRows, kCols,
      [](int row, int col) {
        return static_cast<float>(Code(row, col, 4) - Zero(row, col / kGroup)) *
               Scale(row, col / kGroup);
      },
      QuantFormat::kInt4Group);
}

TEST_F(PackedWeights, AScaleThatIsNotFiniteIsRefused) {
  auto scales = HalfScales(kGroups, kRows, false);
  scales[7] = 0x7E00;
  Write(Gptq(1, InOrder(), scales));
  const auto packed = FindPackedWeight(
      *checkpoint_, {.method = PackedMethod::kGptq, .group_size = kGroup}, "m", kRows, kCols);
  ASSERT_TRUE(packed.ok());
  WeightUnpacker unpacker(1);
  EXPECT_THAT(unpacker.Unpack(**packed, false).status().message(), HasSubstr("m.scales"));
}

}  // namespace
}  // namespace hadal
