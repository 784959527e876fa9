// The results of `hadal bench` as one HTML page with its curves and a roofline drawn in SVG: no
// scripts, nothing from outside.
#pragma once

#include <string>

#include "apps/bench_suite.h"

namespace hadal {

std::string BenchPage(const BenchReport& report);

}  // namespace hadal
