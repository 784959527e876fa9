#include "text/bpe.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/hash.h"

namespace hadal {
namespace {

constexpr uint32_t kNoRank = UINT32_MAX;
// Below this a scan over all ranks beats a heap: words of a natural language.
constexpr size_t kShortPiece = 24;

uint64_t PairKey(TokenId left, TokenId right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left.value)) << 32) |
         static_cast<uint32_t>(right.value);
}

// Order of the heap: the lowest rank on top, the leftmost of equals.
bool IsLater(const BpeScratch::Candidate& a, const BpeScratch::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
}

}  // namespace

Bpe::Bpe(Vocabulary vocabulary, const std::vector<BpeMerge>& merges, Options options)
    : vocabulary_(std::move(vocabulary)),
      options_(options),
      pairs_(std::bit_ceil(2 * merges.size() + 2)),
      word_states_(new std::atomic<uint8_t>[static_cast<size_t>(vocabulary_.size())]()) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    byte_tokens_[byte] = vocabulary_.Find(std::string_view(&c, 1));
  }
  for (size_t i = 0; i < merges.size(); ++i) AddPair(merges[i], static_cast<uint32_t>(i));
}

void Bpe::AddPair(const BpeMerge& merge, uint32_t rank) {
  const uint64_t pair = PairKey(merge.left, merge.right);
  const size_t mask = pairs_.size() - 1;
  size_t i = Mix64(pair) & mask;
  while (pairs_[i].pair != UINT64_MAX && pairs_[i].pair != pair) i = (i + 1) & mask;
  pairs_[i] = {.pair = pair, .rank = rank, .merged = merge.merged};
}

const Bpe::PairSlot* Bpe::FindPair(TokenId left, TokenId right, BpeScratch* scratch) const {
  ++scratch->num_lookups;
  const uint64_t pair = PairKey(left, right);
  const size_t mask = pairs_.size() - 1;
  for (size_t i = Mix64(pair) & mask;; i = (i + 1) & mask) {
    if (pairs_[i].pair == pair) return &pairs_[i];
    if (pairs_[i].pair == UINT64_MAX) return nullptr;
  }
}

void Bpe::Encode(std::string_view piece, BpeScratch* scratch, std::vector<TokenId>* ids) const {
  const TokenId word = vocabulary_.Find(piece);
  if (word == kNoToken) return Merge(piece, scratch, ids);
  std::atomic<uint8_t>& state = word_states_[static_cast<size_t>(word.value)];
  const uint8_t known = state.load(std::memory_order_relaxed);
  if (options_.ignore_merges || known == kWhole) return ids->push_back(word);
  const size_t before = ids->size();
  Merge(piece, scratch, ids);
  if (known == kSplit) return;
  const bool is_whole = ids->size() == before + 1 && ids->back() == word;
  state.store(is_whole ? kWhole : kSplit, std::memory_order_relaxed);
}

void Bpe::Merge(std::string_view piece, BpeScratch* scratch, std::vector<TokenId>* ids) const {
  scratch->ids.clear();
  for (const char c : piece) {
    const TokenId id = byte_tokens_[static_cast<uint8_t>(c)];
    if (id != kNoToken) scratch->ids.push_back(id);
  }
  if (scratch->ids.size() <= kShortPiece) {
    MergeShort(scratch);
  } else {
    MergeLong(scratch);
  }
  ids->insert(ids->end(), scratch->ids.begin(), scratch->ids.end());
}

void Bpe::MergeShort(BpeScratch* scratch) const {
  std::vector<TokenId>& ids = scratch->ids;
  std::vector<uint32_t>& ranks = scratch->ranks;  // of the pair that starts at each place
  const auto rank_at = [&](size_t i) {
    const PairSlot* slot = FindPair(ids[i], ids[i + 1], scratch);
    return slot == nullptr ? kNoRank : slot->rank;
  };
  ranks.clear();
  for (size_t i = 0; i + 1 < ids.size(); ++i) ranks.push_back(rank_at(i));
  while (!ranks.empty()) {
    const auto lowest = std::min_element(ranks.begin(), ranks.end());  // the leftmost of equals
    if (*lowest == kNoRank) return;
    const auto at = static_cast<size_t>(lowest - ranks.begin());
    ids[at] = FindPair(ids[at], ids[at + 1], scratch)->merged;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(at) + 1);
    ranks.erase(lowest);
    if (at > 0) ranks[at - 1] = rank_at(at - 1);
    if (at < ranks.size()) ranks[at] = rank_at(at);
  }
}

void Bpe::PushCandidate(int32_t position, BpeScratch* scratch) const {
  const std::vector<BpeScratch::Node>& nodes = scratch->nodes;
  const BpeScratch::Node& node = nodes[static_cast<size_t>(position)];
  if (node.next < 0) return;
  const TokenId right = nodes[static_cast<size_t>(node.next)].id;
  const PairSlot* slot = FindPair(node.id, right, scratch);
  if (slot == nullptr) return;
  scratch->heap.push_back({.rank = slot->rank,
                           .position = static_cast<uint32_t>(position),
                           .left = node.id,
                           .right = right});
}

// Each merge takes one node away and adds at most two candidates, so the heap sees O(n) of them.
void Bpe::MergeLong(BpeScratch* scratch) const {
  std::vector<BpeScratch::Node>& nodes = scratch->nodes;
  std::vector<BpeScratch::Candidate>& heap = scratch->heap;
  HADAL_CHECK(scratch->ids.size() < INT32_MAX);
  const auto count = static_cast<int32_t>(scratch->ids.size());
  nodes.clear();
  heap.clear();
  for (int32_t i = 0; i < count; ++i) {
    nodes.push_back({.id = scratch->ids[static_cast<size_t>(i)],
                     .prev = i - 1,
                     .next = i + 1 < count ? i + 1 : -1});
  }
  for (int32_t i = 0; i + 1 < count; ++i) PushCandidate(i, scratch);
  std::make_heap(heap.begin(), heap.end(), IsLater);
  const auto push = [&](int32_t position) {
    const size_t before = heap.size();
    PushCandidate(position, scratch);
    if (heap.size() > before) std::push_heap(heap.begin(), heap.end(), IsLater);
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), IsLater);
    const BpeScratch::Candidate top = heap.back();
    heap.pop_back();
    BpeScratch::Node& node = nodes[top.position];
    if (node.id != top.left || node.next < 0) continue;
    BpeScratch::Node& right = nodes[static_cast<size_t>(node.next)];
    if (right.id != top.right) continue;
    node.id = FindPair(top.left, top.right, scratch)->merged;
    node.next = right.next;
    right.id = kNoToken;  // stale from now on
    if (node.next >= 0)
      nodes[static_cast<size_t>(node.next)].prev = static_cast<int32_t>(top.position);
    if (node.prev >= 0) push(node.prev);
    push(static_cast<int32_t>(top.position));
  }
  scratch->ids.clear();
  for (int32_t i = 0; i >= 0; i = nodes[static_cast<size_t>(i)].next) {
    scratch->ids.push_back(nodes[static_cast<size_t>(i)].id);
  }
}

}  // namespace hadal
