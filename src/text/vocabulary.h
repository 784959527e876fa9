// Token ids and their bytes, both ways. Filled once, then read by any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace hadal {

// No published vocabulary is near this; it bounds the tables that a hostile file can ask for.
inline constexpr int kMaxTokenIds = 1 << 21;
inline constexpr TokenId kNoToken{-1};

class Vocabulary {
 public:
  enum class AddResult { kAdded, kIdTaken, kBytesTaken };

  // Room for `num_tokens`, so that Add does not have to grow the tables.
  void Reserve(int num_tokens, size_t num_bytes);

  // A token that merges may build: Find() knows its bytes.
  // REQUIRES: 0 <= id < kMaxTokenIds, bytes not empty.
  AddResult AddWord(TokenId id, std::string_view bytes);

  // A token that is only ever recognised or decoded as a whole: control marks. Same requirements.
  AddResult AddLiteral(TokenId id, std::string_view bytes);

  // The word with these bytes, or kNoToken.
  TokenId Find(std::string_view bytes) const;

  // True when the word with these bytes has this id: quicker than Find() for who can guess.
  bool IsWord(TokenId id, std::string_view bytes) const;

  // Bytes of a token; empty for an id without one. Valid until the next Add.
  std::string_view Bytes(TokenId id) const;
  bool Has(TokenId id) const { return !Bytes(id).empty(); }

  // One more than the largest id that has a token.
  int size() const { return static_cast<int>(tokens_.size()); }

 private:
  struct Place {
    uint32_t offset = 0, length = 0;  // in bytes_; no token: length 0
    bool is_word = false;
  };
  struct Slot {
    uint32_t hash = 0;
    int32_t id = -1;  // -1: free
  };

  AddResult Store(TokenId id, std::string_view bytes);
  size_t FindSlot(std::string_view bytes, uint64_t hash) const;
  void Grow(size_t num_slots);

  std::string bytes_;          // of all tokens, one behind the other
  std::vector<Place> tokens_;  // by id
  std::vector<Slot> slots_;    // of words: open addressing, a power of two, at most half full
  size_t num_words_ = 0;
};

}  // namespace hadal
