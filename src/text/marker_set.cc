#include "text/marker_set.h"

#include <utility>

namespace hadal {

MarkerSet::MarkerSet(std::vector<std::string> markers) : markers_(std::move(markers)) {
  for (const std::string& marker : markers_) {
    if (first_bytes_.find(marker[0]) == std::string::npos) first_bytes_.push_back(marker[0]);
  }
}

MarkerSet::Place MarkerSet::Find(std::string_view text) const {
  for (size_t begin = 0; (begin = text.find_first_of(first_bytes_, begin)) < text.size(); ++begin) {
    bool may_begin = false;
    for (size_t i = 0; i < markers_.size(); ++i) {
      const Fit fit = FitAtFront(text.substr(begin), markers_[i]);
      if (fit == Fit::kWhole) return {begin, static_cast<int>(i)};
      may_begin = may_begin || fit == Fit::kPartly;
    }
    if (may_begin) return {begin, -1};
  }
  return {text.size(), -1};
}

Fit FitAtFront(std::string_view text, std::string_view literal) {
  if (text.starts_with(literal)) return Fit::kWhole;
  return literal.starts_with(text) ? Fit::kPartly : Fit::kNot;
}

}  // namespace hadal
