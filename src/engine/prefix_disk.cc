#include "engine/prefix_disk.h"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

namespace hadal {

PrefixDisk::PrefixDisk(const PrefixDiskLimits& limits, PrefixStore* store, ModelRunner* runner,
                       Inbox* inbox, Metrics* metrics)
    : limits_(limits), store_(store), runner_(runner), inbox_(inbox), metrics_(metrics) {
  RecordStats();
}

PrefixDisk::~PrefixDisk() { writer_.Finish(); }

bool PrefixDisk::Take(int num_shared, Submission* submission) {
  const Request& request = submission->request;
  const SequenceId id = request.id;
  if (away_.contains(request.prompt_leader)) {
    away_.insert(id);
    const auto sibling = std::make_shared<Submission>(std::move(*submission));
    reader_.Add([this, sibling] { inbox_->Return(std::move(*sibling)); });
    return true;
  }
  if (request.prompt_leader != SequenceId{}) return false;  // shares its leader's blocks
  Prompt prompt;
  prompt.tokens = std::make_shared<const std::vector<TokenId>>(request.prompt);
  prompt.salt = request.cache_salt;
  prompt.keys = PrefixKeys(request.cache_salt, request.prompt, store_->options().block_tokens);
  const int first_block = num_shared / store_->options().block_tokens;
  // Never the last token, because its logits are needed.
  const size_t max_blocks = (request.prompt.size() - 1) / store_->options().block_tokens;
  const int num_blocks =
      store_->CountFrom(std::span<const Hash128>(prompt.keys).first(max_blocks), first_block);
  if (first_block + num_blocks > 0) {
    writer_.Add([store = store_, keys = prompt.keys, count = first_block + num_blocks] {
      store->Touch(keys, count);
    });
  }
  const int64_t bytes = num_blocks * store_->options().block_bytes;
  const bool reads = num_blocks > 0 && read_bytes_ + bytes <= limits_.max_read_bytes;
  prompts_.emplace(id, prompt);
  if (!reads) return false;
  read_bytes_ += bytes;
  away_.insert(id);
  const auto moved = std::make_shared<Submission>(std::move(*submission));
  reader_.Add([this, moved, bytes, first_block, num_blocks, prompt = std::move(prompt)] {
    Read(prompt, first_block, num_blocks, moved.get());
    read_bytes_ -= bytes;
    inbox_->Return(std::move(*moved));
  });
  return true;
}

// Reader thread. Stops at the first block that is not sound.
void PrefixDisk::Read(const Prompt& prompt, int first_block, int num_blocks,
                      Submission* submission) {
  const size_t block_bytes = static_cast<size_t>(store_->options().block_bytes);
  const int block_tokens = store_->options().block_tokens;
  const size_t size = static_cast<size_t>(num_blocks) * block_bytes;
  BlockRows rows{.bytes = std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[size]),
                 .first_block = first_block};
  while (rows.bytes && rows.num_blocks < num_blocks) {
    const int block_idx = first_block + rows.num_blocks;
    const PrefixBlock block{
        .key = prompt.keys[block_idx],
        .salt = prompt.salt,
        .block_idx = block_idx,
        .prefix =
            std::span(*prompt.tokens).first(static_cast<size_t>(block_idx + 1) * block_tokens)};
    std::byte* const to = rows.bytes.get() + static_cast<size_t>(rows.num_blocks) * block_bytes;
    if (!store_->Read(block, {to, block_bytes})) break;
    ++rows.num_blocks;
  }
  if (rows.num_blocks > 0) {
    submission->request.first_saved_token = first_block * block_tokens;
    submission->request.num_saved_tokens = (first_block + rows.num_blocks) * block_tokens;
    metrics_->Update([&](MetricsSnapshot* values) {
      values->num_disk_hit_tokens += int64_t{rows.num_blocks} * block_tokens;
    });
    submission->rows = std::move(rows);
  }
  RecordStats();
}

void PrefixDisk::KeepNewBlocks(const BatchPlan& plan) {
  if (prompts_.empty()) return;
  const int block_tokens = store_->options().block_tokens;
  for (const SequenceSlice& slice : plan.slices) {
    const auto found = prompts_.find(slice.id);
    if (found == prompts_.end()) continue;
    const int end = std::min(slice.num_cached + slice.num_tokens, slice.num_prompt_tokens);
    for (int i = slice.num_cached / block_tokens; (i + 1) * block_tokens <= end; ++i)
      KeepBlock(found->second, i, plan.block_ids[slice.block_begin + i]);
    if (end == slice.num_prompt_tokens) prompts_.erase(found);
  }
}

// A block without those before it is worth nothing.
void PrefixDisk::KeepBlock(const Prompt& prompt, int block_idx, BlockId block) {
  const Hash128 key = prompt.keys[block_idx];
  const int64_t bytes = store_->options().block_bytes;
  if (block_idx > 0 && !store_->HasOrClaimed(prompt.keys[block_idx - 1])) return;
  if (write_bytes_ + bytes > limits_.max_write_bytes || !store_->Claim(key)) return;
  const size_t size = static_cast<size_t>(bytes);
  const std::shared_ptr<std::byte[]> rows(new (std::nothrow) std::byte[size]);
  if (!rows || !runner_->CopyBlocksOut({&block, 1}, {rows.get(), size}).ok())
    return store_->Unclaim(key);
  write_bytes_ += bytes;
  const size_t prefix_size =
      static_cast<size_t>(block_idx + 1) * static_cast<size_t>(store_->options().block_tokens);
  writer_.Add(
      [this, rows, bytes, key, block_idx, prefix_size, tokens = prompt.tokens, salt = prompt.salt] {
        store_->Write({.key = key,
                       .salt = salt,
                       .block_idx = block_idx,
                       .prefix = std::span(*tokens).first(prefix_size)},
                      {rows.get(), static_cast<size_t>(bytes)});
        write_bytes_ -= bytes;
        RecordStats();
      });
}

void PrefixDisk::RecordStats() {
  const PrefixStoreStats stats = store_->stats();
  metrics_->Update([&stats](MetricsSnapshot* values) {
    values->disk_bytes = stats.bytes;
    values->num_disk_writes = stats.num_writes;
    values->num_disk_faults = stats.num_faults;
  });
}

}  // namespace hadal
