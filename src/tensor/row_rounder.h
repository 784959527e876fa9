// Rounds rows of floats to grouped formats with several threads.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "tensor/block_layout.h"
#include "tensor/group_rounding.h"

namespace hadal {

class RowRounder {
 public:
  // REQUIRES: num_threads >= 1.
  explicit RowRounder(int num_threads);
  ~RowRounder();
  RowRounder(const RowRounder&) = delete;
  RowRounder& operator=(const RowRounder&) = delete;

  // As RoundRows. REQUIRES: first_row is a multiple of 16.
  void Round(const GroupShape& shape, int cols, int first_row, int num_rows, const float* values,
             ScaleChoice choice, std::span<std::byte> tiles);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hadal
