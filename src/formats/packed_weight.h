// A matrix of an export that packs integer codes into words: compressed-tensors, GPTQ, AWQ.
// Specification, 7.6. Here all of them are the same: element (row, col) is
//   (code - zero point) * scale,
// the codes without sign, with a scale and a zero point for each row and group of columns.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "formats/packed_scheme.h"

namespace hadal {

struct PackedWeight {
  enum class Layout {
    kCompressed,  // words along the columns of a row
    kBytes,       // signed bytes, row by row
    kGptq,        // words along the columns, columns first: [cols / 8, rows]
    kAwq,         // words across eight rows in a mixed order: [cols, rows / 8]
  };
  Layout layout = Layout::kCompressed;
  int bits = 4;
  int rows = 0, cols = 0;  // output features, input features
  int num_groups = 0;      // of a row
  int group_size = 0;      // columns of a group, except of the last one
  bool stores_zero_less_one = false;
  const TensorInfo* codes = nullptr;
  const TensorInfo* scales = nullptr;
  const TensorInfo* zeros = nullptr;         // null: the middle of the range
  const TensorInfo* group_of_col = nullptr;  // GPTQ's order of activations; null: in order

  int middle() const { return 1 << (bits - 1); }
  int64_t num_bytes() const;  // of all its tensors

  // Codes of a row, without sign: 0 .. 2^bits - 1. REQUIRES: codes.size() == cols.
  void RowCodes(int row, std::span<uint8_t> codes_out) const;
  float Scale(int row, int group) const;
  int ZeroPoint(int row, int group) const;  // in the range of the codes
  int GroupOf(int col) const;

  // All elements of a row, each rounded to float once.
  void DecodeRow(int row, std::span<float> out) const;
};

// The packed matrix of a module, "model.layers.0.mlp.up_proj", with `rows` outputs and `cols`
// inputs. Nothing when the module has no packed tensors. kCorrupt with tensor, expected and found
// when they do not fit together; kUnsupported for what cannot be read.
Result<std::optional<PackedWeight>> FindPackedWeight(const Checkpoint& checkpoint,
                                                     const PackedScheme& scheme,
                                                     const std::string& module, int64_t rows,
                                                     int64_t cols);

}  // namespace hadal
