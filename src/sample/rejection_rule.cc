#include "sample/rejection_rule.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"

namespace hadal {

double AcceptProbability(double p, double q) { return q > 0 ? std::min(1.0, p / q) : 0.0; }

bool ResidualDistribution(std::span<const double> p, std::span<const double> q,
                          std::span<double> out) {
  HADAL_CHECK(p.size() == q.size() && p.size() == out.size());
  double left = 0;
  for (size_t i = 0; i < p.size(); ++i) left += std::max(p[i] - q[i], 0.0);
  for (size_t i = 0; i < p.size(); ++i) {
    out[i] = left > 0 ? std::max(p[i] - q[i], 0.0) / left : p[i];
  }
  return left > 0;
}

}  // namespace hadal
