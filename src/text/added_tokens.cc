#include "text/added_tokens.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/unicode_classes.h"

namespace hadal {
namespace {

bool IsSpaceAt(std::string_view text, size_t at, size_t* length) {
  const DecodedCodePoint point = DecodeCodePoint(text.substr(at));
  *length = static_cast<size_t>(point.length);
  const CodePointClass value = CodePointClasses()[point.value];
  return static_cast<CodePointKind>(value & kKindMask) == CodePointKind::kSpace;
}

// Where the character before `at` begins. REQUIRES: at > 0.
size_t PreviousCharacter(std::string_view text, size_t at) {
  do {
    --at;
  } while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80);
  return at;
}

// The word characters of regular expressions: letters, marks, numbers, connecting punctuation,
// joiners. Numbers are a little wider than the reference's, which leaves superscripts out.
bool IsWordAt(std::string_view text, size_t at) {
  const char32_t c = DecodeCodePoint(text.substr(at)).value;
  switch (static_cast<CodePointKind>(CodePointClasses()[c] & kKindMask)) {
    case CodePointKind::kLetter:
    case CodePointKind::kMark:
    case CodePointKind::kNumber:
      return true;
    default:
      break;
  }
  return c == '_' || c == 0x200C || c == 0x200D || c == 0x203F || c == 0x2040 || c == 0x2054 ||
         c == 0xFE33 || c == 0xFE34 || (c >= 0xFE4D && c <= 0xFE4F) || c == 0xFF3F;
}

bool StandsAlone(std::string_view text, TextRange segment, TextRange match) {
  if (match.begin > segment.begin && IsWordAt(text, PreviousCharacter(text, match.begin))) {
    return false;
  }
  return match.end == segment.end || !IsWordAt(text, match.end);
}

// `match` with the white space that its token takes along, from `low` on.
TextRange WithSpaces(std::string_view text, const AddedToken& token, TextRange match, size_t low,
                     size_t high) {
  size_t length = 0;
  while (token.strips_left && match.begin > low) {
    const size_t previous = PreviousCharacter(text, match.begin);
    if (!IsSpaceAt(text, previous, &length)) break;
    match.begin = previous;
  }
  while (token.strips_right && match.end < high && IsSpaceAt(text, match.end, &length)) {
    match.end += length;
  }
  return match;
}

bool IsOrdinaryLetter(const AddedToken& token) {
  return !token.is_special &&
         DecodeCodePoint(token.content).length == static_cast<int>(token.content.size());
}

}  // namespace

void AddedTokens::Trie::Add(std::string_view content, int token_idx) {
  starts[static_cast<uint8_t>(content[0])] = true;
  size_t at = 0;
  for (const char c : content) {
    if (const Node* child = Child(nodes[at], c)) {
      at = static_cast<size_t>(child - nodes.data());
      continue;
    }
    nodes[at].children.emplace_back(static_cast<uint8_t>(c), static_cast<int>(nodes.size()));
    at = nodes.size();
    nodes.emplace_back();
  }
  nodes[at].token_idx = token_idx;
}

const AddedTokens::Trie::Node* AddedTokens::Trie::Child(const Node& node, char byte) const {
  for (const auto& [key, child] : node.children) {
    if (key == static_cast<uint8_t>(byte)) return &nodes[static_cast<size_t>(child)];
  }
  return nullptr;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.content < b.content; });
  for (size_t i = 0; i < tokens_.size(); ++i) {
    Trie& trie = tokens_[i].is_normalized ? normalized_ : exact_;
    trie.Add(tokens_[i].content, static_cast<int>(i));
  }
}

const AddedToken* AddedTokens::FindContent(std::string_view content) const {
  const auto it = std::lower_bound(
      tokens_.begin(), tokens_.end(), content,
      [](const AddedToken& token, std::string_view name) { return token.content < name; });
  return it != tokens_.end() && it->content == content ? &*it : nullptr;
}

void AddedTokens::Find(std::string_view text, std::span<const TextRange> markup,
                       std::vector<AddedTokenMatch>* matches) const {
  std::vector<AddedTokenMatch> exact;
  FindInSegment(text, {0, text.size()}, markup, exact_, &exact);
  matches->clear();
  size_t from = 0;
  for (const AddedTokenMatch& match : exact) {
    FindInSegment(text, {from, match.range.begin}, markup, normalized_, matches);
    matches->push_back(match);
    from = match.range.end;
  }
  FindInSegment(text, {from, text.size()}, markup, normalized_, matches);
}

void AddedTokens::FindInSegment(std::string_view text, TextRange segment,
                                std::span<const TextRange> markup, const Trie& trie,
                                std::vector<AddedTokenMatch>* matches) const {
  auto range = markup.begin();
  size_t from = segment.begin;  // everything before is decided
  size_t at = segment.begin;
  while (at < segment.end) {
    if (!trie.starts[static_cast<uint8_t>(text[at])]) {
      ++at;
      continue;
    }
    while (range != markup.end() && range->end <= at) ++range;
    const size_t markup_end = range != markup.end() && range->begin <= at ? range->end : at;
    const AddedToken* token = LongestAt(text, at, markup_end, segment.end, trie);
    if (token == nullptr) {
      ++at;
      continue;
    }
    const TextRange name{at, at + token->content.size()};
    at = name.end;
    if (token->is_single_word && !StandsAlone(text, segment, name)) continue;
    const TextRange match = WithSpaces(text, *token, name, from, segment.end);
    matches->push_back({token->id, match});
    from = at = match.end;
  }
}

const AddedToken* AddedTokens::LongestAt(std::string_view text, size_t begin, size_t markup_end,
                                         size_t segment_end, const Trie& trie) const {
  const AddedToken* longest = nullptr;
  const Trie::Node* node = trie.nodes.data();
  for (size_t at = begin; at < segment_end;) {
    node = trie.Child(*node, text[at]);
    if (node == nullptr) break;
    ++at;
    if (node->token_idx < 0) continue;
    const AddedToken& token = tokens_[static_cast<size_t>(node->token_idx)];
    if (at <= markup_end || IsOrdinaryLetter(token)) longest = &token;
  }
  return longest;
}

}  // namespace hadal
