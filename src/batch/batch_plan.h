// What one step computes: arrays of numbers, no pointers into either arm. The scheduler writes it,
// the runner reads it; it could as well be written to a file or sent to another rank.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "batch/sampling_params.h"
#include "batch/speculation.h"

namespace hadal {

// New tokens of one sequence. They sit at positions [num_cached, num_cached + num_tokens).
struct SequenceSlice {
  SequenceId id;
  int token_begin = 0, num_tokens = 0;  // into BatchPlan::tokens; drafts included; >= 1
  int num_cached = 0;                   // tokens whose cache rows exist already
  int num_prompt_tokens =
      0;               // positions below it are prompt: they are computed in the prompt's form
  int num_drafts = 0;  // how many of the last new tokens are guesses
  int block_begin = 0, num_blocks = 0;  // into BatchPlan::block_ids
  bool wants_tokens = false;            // false while a prompt is only partly read
  // All tokens before the first new one, for penalties and for drafters that have not seen them;
  // empty when nobody needs them.
  int history_begin = 0, num_history = 0;  // into BatchPlan::history
  // 1 + num_drafts rows of words: the ids that may be drawn behind the last certain token and
  // behind each draft, one bit each; no words: all may.
  int mask_begin = 0, num_mask_words = 0;  // into BatchPlan::masks
  SamplingParams sampling = {};
  Speculation speculation = {};
  int max_proposals = 0;    // guesses that the next step has use for
  TokenId next_token = {};  // behind the last new one while the prompt is partly read; else -1
};

// Blocks of one sequence whose rows leave the cache, or come back into it. They are the blocks
// [first_block, first_block + num_blocks) of the sequence.
struct BlockMove {
  SequenceId id;
  int first_block = 0, num_blocks = 0;
  int block_begin = 0;  // into BatchPlan::moved_blocks
};

struct BatchPlan {
  std::vector<SequenceSlice> slices;
  std::vector<TokenId> tokens;
  std::vector<BlockId> block_ids;
  std::vector<TokenId> history;
  std::vector<uint64_t> masks;
  std::vector<SequenceId>
      released;  // sequences that ended: the runner may forget what it kept for them

  // Copied before the step is computed, first all `saves`, then all `restores`: a block that is
  // saved may already belong to someone else in this step. A sequence is saved whole; after its
  // restore, which may be of no block at all, its copy is not needed any more.
  std::vector<BlockMove> saves, restores;
  std::vector<BlockId> moved_blocks;

  bool empty() const { return slices.empty() && released.empty(); }
};

}  // namespace hadal
