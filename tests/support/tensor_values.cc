#include "tests/support/tensor_values.h"

#include <cstring>

#include <fmt/format.h>

#include "tensor/scalar.h"

namespace hadal {
namespace {

template <class T>
T LoadElement(const TensorInfo& tensor, int64_t i) {
  T value;  // files promise no alignment
  std::memcpy(&value, tensor.bytes.data() + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

Result<double> Element(const TensorInfo& tensor, int64_t i) {
  switch (tensor.dtype) {
    case DType::kF64:
      return LoadElement<double>(tensor, i);
    case DType::kF32:
      return static_cast<double>(LoadElement<float>(tensor, i));
    case DType::kBF16:
      return static_cast<double>(Bf16ToFloat(LoadElement<uint16_t>(tensor, i)));
    case DType::kF16:
      return static_cast<double>(Fp16ToFloat(LoadElement<uint16_t>(tensor, i)));
    case DType::kF8E4M3:
      return static_cast<double>(E4m3ToFloat(LoadElement<uint8_t>(tensor, i)));
    default:
      return Status::Unsupported(fmt::format("{}: dtype {}", tensor.name, DTypeName(tensor.dtype)));
  }
}

Result<std::vector<double>> Elements(const TensorInfo& tensor) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(tensor.num_elements()));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    ASSIGN_OR_RETURN(const double value, Element(tensor, i));
    values.push_back(value);
  }
  return values;
}

}  // namespace

Result<std::vector<double>> ReadTensorValues(const Checkpoint& checkpoint,
                                             const std::string& name) {
  const TensorInfo* tensor = checkpoint.Find(name);
  if (tensor == nullptr) return Status::NotFound(name);
  ASSIGN_OR_RETURN(std::vector<double> values, Elements(*tensor));
  if (tensor->dtype != DType::kF8E4M3) return values;

  const TensorInfo* scale = checkpoint.Find(name + "_scale_inv");
  if (scale == nullptr) return Status::NotFound(name + "_scale_inv");
  ASSIGN_OR_RETURN(const std::vector<double> scales, Elements(*scale));
  const int64_t cols = tensor->shape[1], scale_cols = (cols + 127) / 128;
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
    values[i] *= scales[i / cols / 128 * scale_cols + i % cols / 128];
  }
  return values;
}

}  // namespace hadal
