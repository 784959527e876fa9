#include "engine/metrics_text.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace hadal {
namespace {

TEST(MetricsText, WritesCountersWithLabels) {
  const MetricFamily family{
      "hadal_things_total",
      "Things by \\ kind\nand size.",
      MetricFamily::Type::kCounter,
      {{.labels = {{"kind", "a\"b\\c\nd"}, {"size", "1"}}, .value = 3, .histogram = {}},
       {.labels = {}, .value = 0.25, .histogram = {}}}};
  EXPECT_EQ(MetricsText({&family, 1}),
            "# HELP hadal_things_total Things by \\\\ kind\\nand size.\n"
            "# TYPE hadal_things_total counter\n"
            "hadal_things_total{kind=\"a\\\"b\\\\c\\nd\",size=\"1\"} 3\n"
            "hadal_things_total 0.25\n");
}

TEST(MetricsText, WritesHistogramsCumulatively) {
  Histogram<2> histogram{{0.5, 1}};
  for (const double value : {0.1, 0.5, 0.7, 5.0}) histogram.Add(value);
  const MetricFamily family{"hadal_x_seconds",
                            "X.",
                            MetricFamily::Type::kHistogram,
                            {{.labels = {}, .value = 0, .histogram = HistogramView(histogram)}}};
  EXPECT_EQ(MetricsText({&family, 1}),
            "# HELP hadal_x_seconds X.\n# TYPE hadal_x_seconds histogram\n"
            "hadal_x_seconds_bucket{le=\"0.5\"} 2\n"
            "hadal_x_seconds_bucket{le=\"1\"} 3\n"
            "hadal_x_seconds_bucket{le=\"+Inf\"} 4\n"
            "hadal_x_seconds_sum 6.3\n"
            "hadal_x_seconds_count 4\n");
}

TEST(MetricsText, NamesEveryFamilyOnceWithUnitAndPrefix) {
  MetricsSnapshot values;
  std::set<std::string> names;
  for (const MetricFamily& family : EngineMetrics(values)) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_TRUE(family.name.starts_with("hadal_")) << family.name;
    EXPECT_EQ(family.name.ends_with("_total"), family.type == MetricFamily::Type::kCounter)
        << family.name;
    EXPECT_FALSE(family.samples.empty()) << family.name;
  }
  EXPECT_TRUE(names.contains("hadal_time_to_first_token_seconds"));
}

// Prometheus' own linter, where it is installed.
TEST(MetricsText, PassesPromtool) {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "skipped: promtool is not installed";
  MetricsSnapshot values;
  values.num_stopped = 3;
  values.inter_token.Add(0.02);
  const TempDir dir;
  const std::string path = dir.path() + "/metrics.txt";
  std::ofstream(path) << MetricsText(EngineMetrics(values));
  EXPECT_EQ(std::system(("promtool check metrics < " + path + " > " + dir.path() +
                         "/out 2>&1 || { cat " + dir.path() + "/out; false; }")
                            .c_str()),
            0);
}

}  // namespace
}  // namespace hadal
