// Sequences that wait for admission, in the order of ComesBefore. Owns nothing; engine thread
// only. A preempted sequence keeps its arrival and so comes back first.
#pragma once

#include <set>

#include "sched/sequence.h"

namespace hadal {

class RequestQueue {
 public:
  using Order = std::set<Sequence*, ComesBefore>;

  bool empty() const { return order_.empty(); }
  int size() const { return static_cast<int>(order_.size()); }
  // REQUIRES: it is not in the queue.
  void Push(Sequence* sequence) { order_.insert(sequence); }
  void Remove(Sequence* sequence) { order_.erase(sequence); }

  Order::const_iterator begin() const { return order_.begin(); }
  Order::const_iterator end() const { return order_.end(); }
  // The place behind the removed one.
  Order::const_iterator Remove(Order::const_iterator place) { return order_.erase(place); }

 private:
  Order order_;
};

}  // namespace hadal
