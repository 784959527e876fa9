// Rounds a matrix so that errors answer each other: what rounding a column spoils, the columns
// behind it make good as far as the inputs allow.
//
// Column by column: the residual of column j, the target minus what earlier errors already cause,
// is rounded (J. Chee et al., "QuIP", 2023, algorithm LDLQ; E. Frantar et al., "GPTQ", 2022, is the
// same in another form). Then sweeps over single codes and over scales take what is left, each step
// an exact minimum in one number.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "convert/input_moments.h"
#include "convert/udu_factor.h"
#include "sys/thread_pool.h"
#include "tensor/block_layout.h"
#include "tensor/group_rounding.h"

namespace hadal {

struct FeedbackOptions {
  double damping = 0.01;  // added to the diagonal, of its mean
  int num_sweeps = 2;     // over codes and scales after the first rounding
};

class FeedbackRounder {
 public:
  // One for all matrices that share their inputs. Keeps no reference to `moments`.
  FeedbackRounder(const InputMoments& moments, const FeedbackOptions& options, Backend* backend,
                  ThreadPool* pool);

  // Rounds rows [first_row, first_row + num_rows) of a matrix of moments.cols() columns, given as
  // floats [num_rows, cols], into their places in `tiles`, which is the whole matrix. Returns the
  // cost: sum over rows of e H e^T, damping included. REQUIRES: finite values.
  double Round(const GroupShape& shape, int first_row, int num_rows, const float* values,
               std::span<std::byte> tiles);

 private:
  struct Work;
  void RoundGroupOfRows(int group, Work* work);
  void SweepCodes(Work* work);
  void SweepScales(Work* work);
  double Cost(const Work& work) const;

  int cols_;
  FeedbackOptions options_;
  Backend* backend_;
  ThreadPool* pool_;
  std::vector<float> damped_;  // H with damping
  UduFactor factor_;
};

}  // namespace hadal
