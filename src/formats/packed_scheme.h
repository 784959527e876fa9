// What quantization_config says of exports whose matrices are packed: compressed-tensors, GPTQ and
// AWQ. Specification, 7.6. Whether a matrix is packed, and how wide its groups are, is decided by
// its tensors; the scheme only says how to read them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/status.h"

namespace hadal {

enum class PackedMethod { kNone, kCompressedTensors, kGptq, kAwq };

struct PackedScheme {
  PackedMethod method = PackedMethod::kNone;
  int bits = 4;                      // GPTQ and AWQ
  int group_size = 128;              // GPTQ and AWQ; 0: whole rows
  bool stores_zero_less_one = true;  // GPTQ of version 1
  // Modules that the file claims to have left alone: names, or patterns after "re:".
  std::vector<std::string> ignored = {};
  bool asks_for_activations = false;  // to be rounded too, which is not imitated
};

// "compressed-tensors", "GPTQ", "AWQ"; empty for kNone.
std::string_view PackedMethodName(PackedMethod method);

// `quantization` is the object quantization_config; `what` names it in errors. Nothing when its
// quant_method is none of these. kUnsupported for a variant that cannot be read.
Result<std::optional<PackedScheme>> ParsePackedScheme(const Json& quantization,
                                                      const std::string& what);

}  // namespace hadal
