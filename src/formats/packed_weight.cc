#include "formats/packed_weight.h"

#include <cmath>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "base/quote.h"
#include "base/types.h"
#include "formats/packed_words.h"

namespace hadal {
namespace {

template <class T>
T LoadAt(const TensorInfo& tensor, int64_t i) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

// The code in place `i` of words that hold codes of `bits` bits one after another.
int CodeAt(const TensorInfo& words, int64_t word, int i, int bits) {
  return static_cast<int>((LoadAt<uint32_t>(words, word) >> (bits * i)) & ((1u << bits) - 1));
}

class Finder {
 public:
  Finder(const Checkpoint& checkpoint, const PackedScheme& scheme, const std::string& module,
         int64_t rows, int64_t cols)
      : checkpoint_(checkpoint), scheme_(scheme), module_(module), rows_(rows), cols_(cols) {}

  Result<std::optional<PackedWeight>> Run() {
    weight_.rows = static_cast<int>(rows_);
    weight_.cols = static_cast<int>(cols_);
    switch (scheme_.method) {
      case PackedMethod::kNone:
        return std::optional<PackedWeight>();
      case PackedMethod::kCompressedTensors:
        return FindCompressedTensors();
      case PackedMethod::kGptq:
        return FindGptq();
      case PackedMethod::kAwq:
        return FindAwq();
    }
    return std::optional<PackedWeight>();
  }

 private:
  const TensorInfo* Find(std::string_view suffix) const {
    return checkpoint_.Find(fmt::format("{}.{}", module_, suffix));
  }

  Status Fault(std::string_view suffix, std::string_view expected, std::string_view found) const {
    return Status::Corrupt(fmt::format("{}: tensor {}: expected {}, found {}", checkpoint_.path(),
                                       Quoted(fmt::format("{}.{}", module_, suffix)), expected,
                                       found));
  }

  Status Check(const TensorInfo* tensor, std::string_view suffix, DType dtype,
               const std::vector<int64_t>& shape) const {
    const auto text = [&](DType type, const std::vector<int64_t>& sizes) {
      return fmt::format("{} {}", DTypeName(type), ShapeText(sizes));
    };
    if (tensor == nullptr) return Fault(suffix, text(dtype, shape), "nothing");
    // Words without sign are the same bytes.
    const bool is_same_type =
        tensor->dtype == dtype || (dtype == DType::kI32 && tensor->dtype == DType::kU32);
    if (is_same_type && tensor->shape == shape) return Status::Ok();
    return Fault(suffix, text(dtype, shape), text(tensor->dtype, tensor->shape));
  }

  Status CheckScales(std::string_view suffix, const std::vector<int64_t>& shape) const {
    const TensorInfo* scales = weight_.scales;
    if (scales == nullptr) {
      return Fault(suffix, "scales " + ShapeText(shape), "nothing");
    }
    if (scales->dtype != DType::kF16 && scales->dtype != DType::kBF16 &&
        scales->dtype != DType::kF32) {
      return Fault(suffix, "F16, BF16 or F32", DTypeName(scales->dtype));
    }
    return Check(scales, suffix, scales->dtype, shape);
  }

  Result<std::optional<PackedWeight>> FindCompressedTensors() {
    weight_.codes = Find("weight_packed");
    const TensorInfo* plain = Find("weight");
    if (weight_.codes == nullptr) {
      if (plain == nullptr || plain->dtype != DType::kI8) return std::optional<PackedWeight>();
      return FindSignedBytes(*plain);
    }
    // 4 and 8 bits differ in the number of words.
    const bool is_8_bit = weight_.codes->shape == std::vector{rows_, CeilDiv<int64_t>(cols_, 4)};
    weight_.bits = is_8_bit ? 8 : 4;
    const int per_word = 32 / weight_.bits;
    RETURN_IF_ERROR(Check(weight_.codes, "weight_packed", DType::kI32,
                          {rows_, CeilDiv<int64_t>(cols_, per_word)}));
    if (const TensorInfo* shape = Find("weight_shape"); shape != nullptr) {
      RETURN_IF_ERROR(Check(shape, "weight_shape", DType::kI64, {2}));
      const std::vector<int64_t> found = {LoadAt<int64_t>(*shape, 0), LoadAt<int64_t>(*shape, 1)};
      if (found != std::vector{rows_, cols_}) {
        return Fault("weight_shape", ShapeText(std::vector{rows_, cols_}), ShapeText(found));
      }
    }
    RETURN_IF_ERROR(TakeRowScales());
    weight_.zeros = Find("weight_zero_point");
    if (weight_.zeros != nullptr) {
      RETURN_IF_ERROR(Check(weight_.zeros, "weight_zero_point", DType::kI32,
                            {CeilDiv<int64_t>(rows_, per_word), weight_.num_groups}));
    }
    RETURN_IF_ERROR(TakeOrder("weight_g_idx"));
    return std::optional(weight_);
  }

  Result<std::optional<PackedWeight>> FindSignedBytes(const TensorInfo& codes) {
    weight_.layout = PackedWeight::Layout::kBytes;
    weight_.bits = 8;
    weight_.codes = &codes;
    RETURN_IF_ERROR(Check(&codes, "weight", DType::kI8, {rows_, cols_}));
    RETURN_IF_ERROR(TakeRowScales());
    if (Find("weight_zero_point") != nullptr) {
      return Status::Unsupported(
          fmt::format("{}: tensor {}: expected none beside signed bytes, found one",
                      checkpoint_.path(), Quoted(module_ + ".weight_zero_point")));
    }
    return std::optional(weight_);
  }

  // [rows, groups] of compressed-tensors, which tell the size of a group.
  Status TakeRowScales() {
    weight_.scales = Find("weight_scale");
    int64_t groups = 1;
    if (weight_.scales != nullptr && weight_.scales->shape.size() == 2) {
      groups = weight_.scales->shape[1];
    }
    RETURN_IF_ERROR(CheckScales("weight_scale", {rows_, groups}));
    if (groups < 1 || groups > cols_ || cols_ % groups != 0) {
      return Fault("weight_scale", fmt::format("groups that divide {} columns", cols_),
                   std::to_string(groups));
    }
    weight_.num_groups = static_cast<int>(groups);
    weight_.group_size = static_cast<int>(cols_ / groups);
    return Status::Ok();
  }

  // Which group each column belongs to; a list that says what everybody would guess is left out.
  Status TakeOrder(std::string_view suffix) {
    const TensorInfo* order = Find(suffix);
    if (order == nullptr) return Status::Ok();
    RETURN_IF_ERROR(Check(order, suffix, DType::kI32, {cols_}));
    bool is_plain = true;
    for (int64_t col = 0; col < cols_; ++col) {
      const auto group = LoadAt<int32_t>(*order, col);
      if (group < 0 || group >= weight_.num_groups) {
        return Fault(suffix, fmt::format("groups from 0 to {}", weight_.num_groups - 1),
                     std::to_string(group));
      }
      is_plain = is_plain && group == col / weight_.group_size;
    }
    if (!is_plain) weight_.group_of_col = order;
    return Status::Ok();
  }

  void TakeSchemeGroups() {
    weight_.group_size =
        scheme_.group_size == 0 || scheme_.group_size > cols_ ? weight_.cols : scheme_.group_size;
    weight_.num_groups = CeilDiv(weight_.cols, weight_.group_size);
  }

  Status CheckDivides(std::string_view suffix, std::string_view of, int64_t size, int by) const {
    if (size % by == 0) return Status::Ok();
    return Fault(suffix, fmt::format("{} in whole words of {}", of, by), std::to_string(size));
  }

  Result<std::optional<PackedWeight>> FindGptq() {
    weight_.codes = Find("qweight");
    if (weight_.codes == nullptr) return std::optional<PackedWeight>();
    weight_.layout = PackedWeight::Layout::kGptq;
    weight_.bits = scheme_.bits;
    weight_.stores_zero_less_one = scheme_.stores_zero_less_one;
    const int per_word = 32 / weight_.bits;
    TakeSchemeGroups();
    RETURN_IF_ERROR(CheckDivides("qweight", "columns", cols_, per_word));
    RETURN_IF_ERROR(CheckDivides("qzeros", "rows", rows_, per_word));
    RETURN_IF_ERROR(Check(weight_.codes, "qweight", DType::kI32, {cols_ / per_word, rows_}));
    RETURN_IF_ERROR(TakeColumnScales(per_word));
    RETURN_IF_ERROR(TakeOrder("g_idx"));
    RETURN_IF_ERROR(CheckBias());
    return std::optional(weight_);
  }

  Result<std::optional<PackedWeight>> FindAwq() {
    weight_.codes = Find("qweight");
    if (weight_.codes == nullptr) return std::optional<PackedWeight>();
    weight_.layout = PackedWeight::Layout::kAwq;
    weight_.bits = 4;
    TakeSchemeGroups();
    RETURN_IF_ERROR(CheckDivides("qweight", "rows", rows_, 8));
    RETURN_IF_ERROR(Check(weight_.codes, "qweight", DType::kI32, {cols_, rows_ / 8}));
    RETURN_IF_ERROR(TakeColumnScales(8));
    RETURN_IF_ERROR(CheckBias());
    return std::optional(weight_);
  }

  // [groups, rows] of GPTQ and AWQ.
  Status TakeColumnScales(int per_word) {
    weight_.scales = Find("scales");
    weight_.zeros = Find("qzeros");
    RETURN_IF_ERROR(CheckScales("scales", {weight_.num_groups, rows_}));
    return Check(weight_.zeros, "qzeros", DType::kI32, {weight_.num_groups, rows_ / per_word});
  }

  // Older writers store one full of zeros.
  Status CheckBias() const {
    const TensorInfo* bias = Find("bias");
    if (bias == nullptr) return Status::Ok();
    for (const std::byte byte : bias->bytes) {
      if (byte != std::byte{0}) {
        return Status::Unsupported(
            fmt::format("{}: tensor {}: expected zeros, since these models have no biases, found "
                        "other values",
                        checkpoint_.path(), Quoted(module_ + ".bias")));
      }
    }
    return Status::Ok();
  }

  const Checkpoint& checkpoint_;
  const PackedScheme& scheme_;
  const std::string& module_;
  int64_t rows_, cols_;
  PackedWeight weight_;
};

}  // namespace

int64_t PackedWeight::num_bytes() const {
  size_t bytes = 0;
  for (const TensorInfo* tensor : {codes, scales, zeros, group_of_col}) {
    if (tensor != nullptr) bytes += tensor->bytes.size();
  }
  return static_cast<int64_t>(bytes);
}

void PackedWeight::RowCodes(int row, std::span<uint8_t> out) const {
  const int per_word = 32 / bits;
  for (int col = 0; col < cols; ++col) {
    int code = 0;
    switch (layout) {
      case Layout::kCompressed:
        code = CodeAt(*codes, int64_t{row} * CeilDiv(cols, per_word) + col / per_word,
                      col % per_word, bits);
        break;
      case Layout::kBytes:
        code = LoadAt<int8_t>(*codes, int64_t{row} * cols + col) + 128;
        break;
      case Layout::kGptq:
        code = CodeAt(*codes, int64_t{col / per_word} * rows + row, col % per_word, bits);
        break;
      case Layout::kAwq:
        code = AwqNibble(LoadAt<uint32_t>(*codes, int64_t{col} * (rows / 8) + row / 8), row % 8);
        break;
    }
    out[static_cast<size_t>(col)] = static_cast<uint8_t>(code);
  }
}

float PackedWeight::Scale(int row, int group) const {
  const bool is_by_column = layout == Layout::kGptq || layout == Layout::kAwq;
  const int64_t i = is_by_column ? int64_t{group} * rows + row : int64_t{row} * num_groups + group;
  switch (scales->dtype) {
    case DType::kF16:
      return Fp16ToFloat(LoadAt<uint16_t>(*scales, i));
    case DType::kBF16:
      return Bf16ToFloat(LoadAt<uint16_t>(*scales, i));
    default:
      return LoadAt<float>(*scales, i);
  }
}

int PackedWeight::ZeroPoint(int row, int group) const {
  if (zeros == nullptr) return middle();
  const int per_word = 32 / bits;
  switch (layout) {
    case Layout::kCompressed:
      return CodeAt(*zeros, int64_t{row / per_word} * num_groups + group, row % per_word, bits);
    case Layout::kGptq: {
      const int stored =
          CodeAt(*zeros, int64_t{group} * (rows / per_word) + row / per_word, row % per_word, bits);
      return stores_zero_less_one ? (stored + 1) & ((1 << bits) - 1) : stored;
    }
    case Layout::kAwq:
      return AwqNibble(LoadAt<uint32_t>(*zeros, int64_t{group} * (rows / 8) + row / 8), row % 8);
    case Layout::kBytes:
      break;
  }
  return middle();
}

int PackedWeight::GroupOf(int col) const {
  return group_of_col != nullptr ? LoadAt<int32_t>(*group_of_col, col) : col / group_size;
}

void PackedWeight::DecodeRow(int row, std::span<float> out) const {
  std::vector<uint8_t> row_codes(static_cast<size_t>(cols));
  RowCodes(row, row_codes);
  std::vector<float> row_scales(static_cast<size_t>(num_groups));
  std::vector<int> row_zeros(static_cast<size_t>(num_groups));
  for (int group = 0; group < num_groups; ++group) {
    row_scales[static_cast<size_t>(group)] = Scale(row, group);
    row_zeros[static_cast<size_t>(group)] = ZeroPoint(row, group);
  }
  for (int col = 0; col < cols; ++col) {
    const auto group = static_cast<size_t>(GroupOf(col));
    const int code = row_codes[static_cast<size_t>(col)] - row_zeros[group];
    out[static_cast<size_t>(col)] = static_cast<float>(code) * row_scales[group];
  }
}

Result<std::optional<PackedWeight>> FindPackedWeight(const Checkpoint& checkpoint,
                                                     const PackedScheme& scheme,
                                                     const std::string& module, int64_t rows,
                                                     int64_t cols) {
  return Finder(checkpoint, scheme, module, rows, cols).Run();
}

}  // namespace hadal
