// The classic rule for a draft that was drawn from a distribution of its own: accept it with a
// probability, else draw from what is left. The token then has exactly the target's distribution.
// Leviathan et al., "Fast inference from transformers via speculative decoding", 2023;
// specification, 5.4. Both distributions are those after temperature, filters and penalties.
#pragma once

#include <span>

namespace hadal {

// min(1, p / q): how often a draft is accepted that the target gives probability `p` and its
// drafter gave `q`. A draft with q = 0 was never drawn; 0 then.
double AcceptProbability(double p, double q);

// What to draw from after a rejection: out[i] = max(p[i] - q[i], 0), scaled to sum 1. False, and
// `out` is `p`, when nothing is left: then p = q and no draft is ever rejected. REQUIRES: equal
// sizes; `out` may be `p` or `q`.
bool ResidualDistribution(std::span<const double> p, std::span<const double> q,
                          std::span<double> out);

}  // namespace hadal
