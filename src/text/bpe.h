// Byte-pair merging of one piece of text. Specification, 9.1, step 3: while a pair of neighbours is
// in the list of merges, merge the pair of the lowest rank, the leftmost of equals.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "text/vocabulary.h"

namespace hadal {

struct BpeMerge {
  TokenId left, right, merged;
};

// Working memory of one call after another; one thread.
struct BpeScratch {
  struct Node {
    TokenId id;
    int32_t prev, next;  // -1: none
  };
  struct Candidate {
    uint32_t rank, position;
    TokenId left, right;  // what stood there; the entry is stale when it does not any more
  };
  std::vector<TokenId> ids;
  std::vector<uint32_t> ranks;
  std::vector<Node> nodes;
  std::vector<Candidate> heap;
  int64_t num_lookups = 0;  // of pairs, so far: tests hold the work against the length
};

class Bpe {
 public:
  struct Options {
    // A piece that is a word of the vocabulary is taken whole, whatever the merges say.
    bool ignore_merges = false;
  };

  // The rank of a merge is its place in `merges`; of a repeated pair the last place counts.
  // REQUIRES: the tokens of the merges are words of the vocabulary.
  Bpe(Vocabulary vocabulary, const std::vector<BpeMerge>& merges, Options options);

  const Vocabulary& vocabulary() const { return vocabulary_; }

  // Appends the ids of `piece`. A byte without a token gives nothing, as if it were not there.
  // O(n log n) in the length, constant stack. Any thread.
  void Encode(std::string_view piece, BpeScratch* scratch, std::vector<TokenId>* ids) const;

 private:
  // What the merges make of a vocabulary word: found out when it is first met. Every thread finds
  // the same, so a relaxed flag is enough.
  enum WordState : uint8_t { kUnknown, kWhole, kSplit };
  struct PairSlot {
    uint64_t pair = UINT64_MAX;  // left in the high half; all ones: free
    uint32_t rank = 0;
    TokenId merged;
  };

  const PairSlot* FindPair(TokenId left, TokenId right, BpeScratch* scratch) const;
  void AddPair(const BpeMerge& merge, uint32_t rank);
  void Merge(std::string_view piece, BpeScratch* scratch, std::vector<TokenId>* ids) const;
  void MergeShort(BpeScratch* scratch) const;
  void MergeLong(BpeScratch* scratch) const;
  void PushCandidate(int32_t position, BpeScratch* scratch) const;

  Vocabulary vocabulary_;
  Options options_;
  std::vector<PairSlot> pairs_;  // open addressing, a power of two, at most half full
  TokenId byte_tokens_[256];
  std::unique_ptr<std::atomic<uint8_t>[]> word_states_;  // by id
};

}  // namespace hadal
