// What `hadal bench` found, for people and for scripts.
#pragma once

#include <string>

#include "apps/bench_suite.h"
#include "base/json.h"

namespace hadal {

// The object of the command's --json.
Json BenchAsJson(const BenchReport& report);

// A line of the table, and the lines above it.
std::string BenchTableHead(const BenchModel& model);
std::string BenchTableRow(const BenchResult& result);

// One line per result under a line of names.
std::string BenchAsCsv(const BenchReport& report);

// kCorrupt when `earlier`, read from `what`, is not the JSON of a run.
Status CheckEarlierBench(const Json& earlier, const std::string& what);

// Results of an earlier run beside those of this one, where both have them: ratios of speed above
// one are gains. kCorrupt when a result lacks what it should have.
Result<std::string> CompareBench(const BenchReport& report, const Json& earlier,
                                 const std::string& what);

}  // namespace hadal
