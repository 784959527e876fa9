#include "engine/saved_rows.h"

#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace hadal {
namespace {

std::span<const BlockId> BlocksOf(const BatchPlan& plan, const BlockMove& move) {
  return std::span(plan.moved_blocks)
      .subspan(static_cast<size_t>(move.block_begin), static_cast<size_t>(move.num_blocks));
}

}  // namespace

void SavedRows::Add(SequenceId id, BlockRows rows) {
  num_blocks_ += rows.num_blocks;
  const bool is_new = rows_.emplace(id, std::move(rows)).second;
  HADAL_CHECK(is_new);
}

void SavedRows::Erase(SequenceId id) {
  const auto place = rows_.find(id);
  if (place == rows_.end()) return;
  num_blocks_ -= place->second.num_blocks;
  rows_.erase(place);
}

Status SavedRows::Save(const BatchPlan& plan, const BlockMove& move) {
  const size_t size = static_cast<size_t>(move.num_blocks * runner_->info().block_bytes);
  BlockRows rows{.bytes = std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[size]),
                 .first_block = move.first_block,
                 .num_blocks = move.num_blocks};
  if (!rows.bytes) {
    return Status::ResourceExhausted(
        fmt::format("rows of a preempted sequence: {} bytes are not to be had", size));
  }
  RETURN_IF_ERROR(runner_->CopyBlocksOut(BlocksOf(plan, move), {rows.bytes.get(), size}));
  Add(move.id, std::move(rows));
  return Status::Ok();
}

Status SavedRows::Restore(const BatchPlan& plan, const BlockMove& move) {
  const auto place = rows_.find(move.id);
  HADAL_CHECK(place != rows_.end());
  const BlockRows& rows = place->second;
  const size_t block_bytes = static_cast<size_t>(runner_->info().block_bytes);
  Status status;
  if (move.num_blocks > 0) {
    HADAL_CHECK(move.first_block >= rows.first_block &&
                move.first_block + move.num_blocks <= rows.first_block + rows.num_blocks);
    const std::byte* first =
        rows.bytes.get() + static_cast<size_t>(move.first_block - rows.first_block) * block_bytes;
    status = runner_->CopyBlocksIn({first, static_cast<size_t>(move.num_blocks) * block_bytes},
                                   BlocksOf(plan, move));
  }
  Erase(move.id);
  return status;
}

}  // namespace hadal
