// Finds fixed strings in text that arrives in pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hadal {

class MarkerSet {
 public:
  // REQUIRES: no marker is empty or begins another; one may end another.
  explicit MarkerSet(std::vector<std::string> markers);

  struct Place {
    // Of the first marker; without one, of the tail that more text may turn into one, or the end.
    size_t begin = 0;
    int marker_idx = -1;  // -1: none is there as a whole
  };

  // What precedes the place is certain to hold no marker, whatever follows.
  Place Find(std::string_view text) const;

  const std::string& marker(int idx) const { return markers_[static_cast<size_t>(idx)]; }

 private:
  std::vector<std::string> markers_;
  std::string first_bytes_;
};

// How a text relates to a literal that is expected at its front.
enum class Fit { kNot, kPartly, kWhole };
Fit FitAtFront(std::string_view text, std::string_view literal);

}  // namespace hadal
