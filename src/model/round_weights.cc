#include "model/round_weights.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/types.h"
#include "model/weight_formats.h"
#include "model/weight_slots.h"
#include "tensor/group_tiles.h"
#include "tensor/row_rounder.h"

namespace hadal {
namespace {

constexpr int64_t kChunkFloats = int64_t{1} << 22;
constexpr int64_t kAlignment = 64;

struct Job {
  QuantizedMatrix* matrix = nullptr;
  GroupShape shape;
  int64_t offset = 0;  // of its tiles in the arena
};

// Matrices of the roles that are rounded; MTP's stand-ins share the main ones.
std::vector<Job> FindJobs(const ModelConfig& config, const GroupShape& shape,
                          ModelWeights* weights) {
  std::vector<Job> jobs;
  const auto add = [&](const ExpectedWeight& weight) {
    if (weight.shape.size() != 2) return;
    const std::optional<GroupShape> wanted = DefaultFormat(weight.role, weight.shape[1], shape);
    QuantizedMatrix* matrix =
        ModelMatrix(config, weight.role, weight.layer_idx, weight.expert_idx, weights);
    if (wanted && matrix != nullptr && !matrix->empty()) jobs.push_back({matrix, *wanted, 0});
  };
  ForEachWeight(config, add);
  if (weights->mtp) ForEachMtpWeight(config, add);
  return jobs;
}

class Rounder {
 public:
  explicit Rounder(Backend* backend) : backend_(backend), rows_(backend->num_threads()) {}

  void Round(const Job& job, std::byte* arena) {
    const QuantizedMatrix source = *job.matrix;
    const int64_t num_bytes = GroupedBytes(job.shape, source.rows, source.cols);
    const std::span<std::byte> tiles(arena + job.offset, static_cast<size_t>(num_bytes));
    const auto fitting = static_cast<int>(std::min<int64_t>(kChunkFloats / source.cols, 1 << 20));
    const int per_chunk = std::max(kTileRows, fitting / kTileRows * kTileRows);
    for (int first = 0; first < source.rows; first += per_chunk) {
      const int count = std::min(per_chunk, source.rows - first);
      decoded_.resize(static_cast<size_t>(count) * static_cast<size_t>(source.cols));
      row_ids_.resize(static_cast<size_t>(count));
      std::iota(row_ids_.begin(), row_ids_.end(), first);
      backend_->Embed(row_ids_, source, {decoded_.data(), count, source.cols, source.cols});
      rows_.Round(job.shape, source.cols, first, count, decoded_.data(), ScaleChoice::kQuick,
                  tiles);
    }
    *job.matrix = GroupedView(job.shape, source.rows, source.cols, tiles.data());
  }

 private:
  Backend* backend_;
  RowRounder rows_;
  std::vector<float> decoded_;
  std::vector<int32_t> row_ids_;
};

}  // namespace

Status RoundWeights(const ModelConfig& config, const GroupShape& shape, Backend* backend,
                    ModelWeights* weights) {
  if (config.has_grouped_weights) {
    return Status::InvalidArgument(
        "format: expected a model with wide or FP8 weights to round, found a quantised one");
  }
  // Copies that stand in for missing ones are set anew afterwards.
  const bool shares_head = weights->mtp && weights->mtp->head.data == weights->head.data;
  std::vector<Job> jobs = FindJobs(config, shape, weights);
  if (shares_head) {
    std::erase_if(jobs, [&](const Job& job) { return job.matrix == &weights->mtp->head; });
  }
  int64_t total = 0;
  for (Job& job : jobs) {
    job.offset = total;
    total += RoundUp(GroupedBytes(job.shape, job.matrix->rows, job.matrix->cols), kAlignment);
  }
  ASSIGN_OR_RETURN(weights->resident, backend->Allocate(total));
  Rounder rounder(backend);
  for (const Job& job : jobs) rounder.Round(job, weights->resident.data());
  if (shares_head) weights->mtp->head = weights->head;
  return Status::Ok();
}

}  // namespace hadal
