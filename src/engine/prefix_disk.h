// Between the engine thread and the prefixes on disk: prompts whose rows lie there wait until they
// were read, rows of prompts that were computed are handed on to be written. Neither is done on the
// engine thread, which otherwise owns all this.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/hash.h"
#include "base/types.h"
#include "batch/batch_plan.h"
#include "engine/inbox.h"
#include "engine/io_thread.h"
#include "engine/metrics.h"
#include "engine/prefix_store.h"
#include "runner/model_runner.h"

namespace hadal {

struct PrefixDiskLimits {
  int64_t max_read_bytes = int64_t{1} << 30;     // read and not yet in the cache
  int64_t max_write_bytes = int64_t{256} << 20;  // copied and not yet written
};

class PrefixDisk {
 public:
  // All must outlive it. Submissions that were read for come back through `inbox`.
  PrefixDisk(const PrefixDiskLimits& limits, PrefixStore* store, ModelRunner* runner, Inbox* inbox,
             Metrics* metrics);
  // What was handed on is written.
  ~PrefixDisk();

  // Takes in a new sequence, of whose prompt `num_shared` tokens are in the cache. True when its
  // submission was moved away: it comes back with rows. Siblings follow their leader.
  bool Take(int num_shared, Submission* submission);

  // A submission that was moved away is back.
  void NoteReturned(SequenceId id) { away_.erase(id); }

  // Behind a step that was computed: copies the prompt blocks that it completed and hands them on.
  void KeepNewBlocks(const BatchPlan& plan);

  void Forget(SequenceId id) { prompts_.erase(id); }

 private:
  struct Prompt {
    std::shared_ptr<const std::vector<TokenId>> tokens;
    Hash128 salt;
    std::vector<Hash128> keys;  // of its full blocks
  };

  void Read(const Prompt& prompt, int first_block, int num_blocks, Submission* submission);
  void KeepBlock(const Prompt& prompt, int block_idx, BlockId block);
  void RecordStats();

  const PrefixDiskLimits limits_;
  PrefixStore* const store_;
  ModelRunner* const runner_;
  Inbox* const inbox_;
  Metrics* const metrics_;
  std::unordered_map<SequenceId, Prompt> prompts_;  // that are being computed
  std::unordered_set<SequenceId> away_;
  std::atomic<int64_t> read_bytes_{0}, write_bytes_{0};  // under way
  IoThread reader_, writer_;                             // last: they use the rest
};

}  // namespace hadal
