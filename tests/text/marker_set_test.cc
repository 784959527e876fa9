#include "text/marker_set.h"

#include <gtest/gtest.h>

namespace hadal {
namespace {

const MarkerSet& Markers() {
  static const MarkerSet markers({"<end>", "\n<end>", "\n```"});
  return markers;
}

void ExpectPlace(std::string_view text, size_t begin, int marker_idx) {
  const MarkerSet::Place place = Markers().Find(text);
  EXPECT_EQ(place.begin, begin) << text;
  EXPECT_EQ(place.marker_idx, marker_idx) << text;
}

TEST(MarkerSet, FindsTheFirstMarker) {
  ExpectPlace("ab<end>\n```", 2, 0);
  ExpectPlace("ab\n```<end>", 2, 2);
}

TEST(MarkerSet, PrefersTheMarkerThatBeginsEarlier) { ExpectPlace("a\n\n<end>", 2, 1); }

TEST(MarkerSet, PointsToATailThatMayBecomeAMarker) {
  ExpectPlace("ab<en", 2, -1);
  ExpectPlace("ab\n\n", 3, -1);
  ExpectPlace("ab<ex", 5, -1);
  ExpectPlace("", 0, -1);
}

TEST(MarkerSet, TellsPartsFromWholes) {
  EXPECT_EQ(FitAtFront("<end> x", "<end>"), Fit::kWhole);
  EXPECT_EQ(FitAtFront("<en", "<end>"), Fit::kPartly);
  EXPECT_EQ(FitAtFront("", "<end>"), Fit::kPartly);
  EXPECT_EQ(FitAtFront("<enx", "<end>"), Fit::kNot);
}

}  // namespace
}  // namespace hadal
