// Finds the added tokens of tokenizer.json in a text: leftmost first, the longest at equal
// position. Specification, 9.1 and 9.4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/types.h"

namespace hadal {

// Longer names are refused when a file is read, so that looking for one takes bounded time.
inline constexpr size_t kMaxAddedTokenBytes = 1024;

// The flags are the file's.
struct AddedToken {
  TokenId id;
  std::string content;
  bool is_special = false;
  bool is_normalized = false;   // found after all those that are not
  bool is_single_word = false;  // only where no word character touches it
  bool strips_left = false;     // takes the white space before it along
  bool strips_right = false;    // and behind it
};

// Parts of a text, as byte offsets, in order and apart from each other.
struct TextRange {
  size_t begin, end;
};

struct AddedTokenMatch {
  TokenId id;
  TextRange range;
};

class AddedTokens {
 public:
  // REQUIRES: contents differ, are not empty and at most kMaxAddedTokenBytes long.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  // Matches in `text`, in order. A token is found only where its whole name lies in one of the
  // ranges of `markup`; everywhere are found the tokens that stand for a letter of ordinary text
  // (deepseek-llm has small u with diaeresis as one): a single character without `special` flag.
  // REQUIRES: `text` is valid UTF-8.
  void Find(std::string_view text, std::span<const TextRange> markup,
            std::vector<AddedTokenMatch>* matches) const;

  // Null when no token is spelled so.
  const AddedToken* FindContent(std::string_view content) const;

  const std::vector<AddedToken>& tokens() const { return tokens_; }

 private:
  // A tree of bytes; node 0 is the root.
  struct Trie {
    struct Node {
      int token_idx = -1;  // into tokens_; -1: no name ends here
      std::vector<std::pair<uint8_t, int>> children;
    };
    std::vector<Node> nodes{1};
    bool starts[256] = {};

    void Add(std::string_view content, int token_idx);
    const Node* Child(const Node& node, char byte) const;
  };

  // Matches in text[segment.begin, segment.end), as if that were the whole text.
  void FindInSegment(std::string_view text, TextRange segment, std::span<const TextRange> markup,
                     const Trie& trie, std::vector<AddedTokenMatch>* matches) const;
  // The longest name at text[begin...] that may count there, or null.
  const AddedToken* LongestAt(std::string_view text, size_t begin, size_t markup_end,
                              size_t segment_end, const Trie& trie) const;

  std::vector<AddedToken> tokens_;  // sorted by content
  Trie exact_, normalized_;
};

}  // namespace hadal
