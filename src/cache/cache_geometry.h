// What a block of the cache is for a model. Nobody outside cache/ and the model's own cache assumes
// one row per token or that a prefix hit may end at any block: they ask here.
#pragma once

namespace hadal {

struct CacheGeometry {
  int num_blocks = 0;
  int block_tokens = 64;  // positions of one block
  // A shared prefix may end only at a multiple of this many tokens; 0 means block_tokens. Models
  // that keep more than rows (rings of the last positions) can restart only at checkpoints.
  int restart_tokens = 0;

  int restart_granularity() const { return restart_tokens > 0 ? restart_tokens : block_tokens; }
};

}  // namespace hadal
