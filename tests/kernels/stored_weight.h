// A weight as a file stores it, with the exact value of each element from tensor/scalar.h.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "kernels/kernel_table.h"
#include "tensor/scalar.h"
#include "tests/kernels/guarded.h"

namespace hadal::testing {

constexpr QuantFormat kAllFormats[] = {QuantFormat::kF32, QuantFormat::kBF16, QuantFormat::kF16,
                                       QuantFormat::kF8Block128};

inline std::string FormatName(QuantFormat format) {
  constexpr const char* kNames[] = {"F32", "BF16", "F16", "F8Block128"};
  return kNames[static_cast<int>(format)];
}

// [rows, cols] at any alignment, guarded behind its last byte. `first_row` is where row 0 stands in
// the matrix that the scales describe.
class StoredWeight {
 public:
  StoredWeight(QuantFormat format, int rows, int cols, Random* random, int first_row = 0)
      : format_(format),
        rows_(rows),
        cols_(cols),
        first_row_(first_row),
        scale_stride_((cols + 127) / 128),
        bytes_(int64_t{rows} * cols * ElementBytes(format)),
        scales_(int64_t{(first_row + rows + 127) / 128} * scale_stride_ * 4) {
    std::normal_distribution<float> normal(0.0f, 1.0f);
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < cols; ++c) Set(r, c, normal(*random));
    }
    for (int64_t i = 0; i < scales_.size() / 4; ++i) {
      SetScale(i, 0.01f + 0.001f * std::abs(normal(*random)));
    }
  }

  // Rounds `value` to the format (before the scale).
  void Set(int r, int c, float value) {
    switch (format_) {
      case QuantFormat::kF32:
        return SetCode(r, c, value);
      case QuantFormat::kBF16:
        return SetCode(r, c, FloatToBf16(value));
      case QuantFormat::kF16:
        return SetCode(r, c, FloatToFp16(value));
      case QuantFormat::kF8Block128:
        return SetCode(r, c, FloatToE4m3(value * 32));
      default:
        HADAL_CHECK(false);  // grouped formats: tests/kernels/grouped_test.cc
    }
  }
  template <class Code>
  void SetCode(int r, int c, Code code) {
    HADAL_CHECK(sizeof(code) == static_cast<size_t>(ElementBytes(format_)));
    std::memcpy(bytes_.data() + (int64_t{r} * cols_ + c) * ElementBytes(format_), &code,
                sizeof(code));
  }
  void SetScale(int64_t idx, float scale) {
    std::memcpy(scales_.data() + idx * 4, &scale, sizeof(scale));
  }
  int scale_stride() const { return scale_stride_; }
  int rows() const { return rows_; }
  int cols() const { return cols_; }
  QuantFormat format() const { return format_; }

  // Rows [first, ..) for a kernel.
  WeightRows Rows(int first = 0) const {
    const bool has_scales = format_ == QuantFormat::kF8Block128;
    return {.data = bytes_.data() + int64_t{first} * cols_ * ElementBytes(format_),
            .scales = has_scales ? scales_.data() : nullptr,
            .scale_stride = has_scales ? scale_stride_ : 0,
            .first_row = first_row_ + first,
            .cols = cols_};
  }

  float At(int r, int c) const {
    const char* p = bytes_.data() + (int64_t{r} * cols_ + c) * ElementBytes(format_);
    switch (format_) {
      case QuantFormat::kF32:
        return Read<float>(p);
      case QuantFormat::kBF16:
        return Bf16ToFloat(Read<uint16_t>(p));
      case QuantFormat::kF16:
        return Fp16ToFloat(Read<uint16_t>(p));
      default:
        break;
    }
    const int64_t block = int64_t{(first_row_ + r) / 128} * scale_stride_ + c / 128;
    return E4m3ToFloat(Read<uint8_t>(p)) * Read<float>(scales_.data() + block * 4);
  }

 private:
  template <class T>
  static T Read(const char* p) {
    T value;
    std::memcpy(&value, p, sizeof(value));
    return value;
  }

  QuantFormat format_;
  int rows_, cols_, first_row_, scale_stride_;
  Guarded<char> bytes_;
  Guarded<char> scales_;
};

}  // namespace hadal::testing
