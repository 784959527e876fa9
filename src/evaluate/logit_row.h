// What one row of logits says. Sums in double precision.
#pragma once

#include <cstdint>
#include <span>

namespace hadal {

// log of the sum of the exponentials. REQUIRES: not empty.
double LogSumExp(std::span<const float> logits);

// -log softmax(logits)[id], in nats. REQUIRES: 0 <= id < size.
double NegativeLogLikelihood(std::span<const float> logits, int32_t id);

// The place of the largest; of equal ones the first. REQUIRES: not empty.
int32_t BestId(std::span<const float> logits);

// Kullback-Leibler divergence sum_i p_i log(p_i / q_i), in nats, of softmax(q) from softmax(p);
// what p gives no probability adds nothing. REQUIRES: equal sizes, not empty.
double KlDivergence(std::span<const float> p, std::span<const float> q);

}  // namespace hadal
