// The door between threads that submit and cancel, and the engine thread that takes both in.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/types.h"
#include "engine/output_processor.h"
#include "engine/saved_rows.h"
#include "sched/request.h"

namespace hadal {

// A sequence on its way to the scheduler, with what its output needs.
struct Submission {
  Request request;
  std::unique_ptr<OutputSequence> output;
  BlockRows rows = {};   // of Request::first_saved_token on
  bool is_back = false;  // it was taken in before, and sent to have its rows read
};

// Any thread.
class Inbox {
 public:
  void Submit(std::vector<Submission> submissions) {
    const std::lock_guard lock(mutex_);
    for (Submission& submission : submissions) submissions_.push_back(std::move(submission));
    arrived_.notify_one();
  }

  // A submission whose rows were read: not before those that arrived meanwhile, which does not
  // matter, as its arrival stands in its request.
  void Return(Submission submission) {
    submission.is_back = true;
    const std::lock_guard lock(mutex_);
    submissions_.push_back(std::move(submission));
    arrived_.notify_one();
  }

  void Cancel(const std::vector<SequenceId>& ids) {
    const std::lock_guard lock(mutex_);
    cancelled_.insert(cancelled_.end(), ids.begin(), ids.end());
    arrived_.notify_one();
  }

  // Everything behind it is for nothing: Wait() returns at once from now on.
  void Close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    arrived_.notify_one();
  }
  bool is_closed() const {
    const std::lock_guard lock(mutex_);
    return is_closed_;
  }

  // Waits until there is something to take or the inbox is closed.
  void Wait() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock,
                  [this] { return is_closed_ || !submissions_.empty() || !cancelled_.empty(); });
  }

  // Calls visit(ids) with those that were cancelled and not taken out yet.
  template <class Visit>
  void VisitCancelled(const Visit& visit) const {
    const std::lock_guard lock(mutex_);
    visit(cancelled_);
  }

  // Moves everything out. Both lists are empty before; their memory is reused.
  void Drain(std::vector<Submission>* submissions, std::vector<SequenceId>* cancelled) {
    const std::lock_guard lock(mutex_);
    submissions->swap(submissions_);
    cancelled->swap(cancelled_);
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Submission> submissions_;  // guarded by mutex_, as is all below
  std::vector<SequenceId> cancelled_;
  bool is_closed_ = false;
};

}  // namespace hadal
