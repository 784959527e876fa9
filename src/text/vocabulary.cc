#include "text/vocabulary.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"

namespace hadal {
namespace {

uint64_t HashBytes(std::string_view bytes) {
  uint64_t hash = Mix64(bytes.size() + 0x9e3779b97f4a7c15ULL);
  const char* p = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; p += 8, left -= 8) {
    uint64_t word = 0;
    std::memcpy(&word, p, 8);
    hash = Mix64(hash ^ word);
  }
  uint64_t word = 0;
  std::memcpy(&word, p, left);
  return Mix64(hash ^ word);
}

}  // namespace

void Vocabulary::Reserve(int num_tokens, size_t num_bytes) {
  bytes_.reserve(num_bytes);
  tokens_.reserve(static_cast<size_t>(num_tokens));
  Grow(std::bit_ceil(2 * static_cast<size_t>(num_tokens) + 2));
}

Vocabulary::AddResult Vocabulary::Store(TokenId id, std::string_view bytes) {
  HADAL_CHECK(id.value >= 0 && id.value < kMaxTokenIds && !bytes.empty());
  if (Has(id)) return AddResult::kIdTaken;
  const auto index = static_cast<size_t>(id.value);
  if (index >= tokens_.size()) tokens_.resize(index + 1);
  tokens_[index] = {.offset = static_cast<uint32_t>(bytes_.size()),
                    .length = static_cast<uint32_t>(bytes.size())};
  bytes_ += bytes;
  return AddResult::kAdded;
}

Vocabulary::AddResult Vocabulary::AddWord(TokenId id, std::string_view bytes) {
  if (2 * (num_words_ + 1) > slots_.size()) Grow(std::bit_ceil(4 * (num_words_ + 1)));
  const uint64_t hash = HashBytes(bytes);
  Slot& slot = slots_[FindSlot(bytes, hash)];
  if (slot.id >= 0) return AddResult::kBytesTaken;
  const AddResult result = Store(id, bytes);
  if (result != AddResult::kAdded) return result;
  slot = {.hash = static_cast<uint32_t>(hash), .id = id.value};
  tokens_[static_cast<size_t>(id.value)].is_word = true;
  ++num_words_;
  return AddResult::kAdded;
}

Vocabulary::AddResult Vocabulary::AddLiteral(TokenId id, std::string_view bytes) {
  return Store(id, bytes);
}

TokenId Vocabulary::Find(std::string_view bytes) const {
  if (slots_.empty()) return kNoToken;
  return TokenId{slots_[FindSlot(bytes, HashBytes(bytes))].id};
}

bool Vocabulary::IsWord(TokenId id, std::string_view bytes) const {
  return Bytes(id) == bytes && !bytes.empty() && tokens_[static_cast<size_t>(id.value)].is_word;
}

std::string_view Vocabulary::Bytes(TokenId id) const {
  if (id.value < 0 || id.value >= size()) return {};
  const Place& place = tokens_[static_cast<size_t>(id.value)];
  return std::string_view(bytes_).substr(place.offset, place.length);
}

// The slot that holds `bytes`, or the free one where they would go.
size_t Vocabulary::FindSlot(std::string_view bytes, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t i = (hash >> 32) & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.id < 0) return i;
    if (slot.hash == static_cast<uint32_t>(hash) && Bytes(TokenId{slot.id}) == bytes) return i;
  }
}

void Vocabulary::Grow(size_t num_slots) {
  if (num_slots <= slots_.size()) return;
  const std::vector<Slot> old = std::move(slots_);
  slots_.assign(num_slots, Slot{});
  for (const Slot& slot : old) {
    if (slot.id < 0) continue;
    const std::string_view bytes = Bytes(TokenId{slot.id});
    slots_[FindSlot(bytes, HashBytes(bytes))] = slot;
  }
}

}  // namespace hadal
