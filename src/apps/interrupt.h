// Ctrl-C for commands that run long: outside of an answer it ends the process with code 130, inside
// it only asks, so that what is there can be shown.
#pragma once

namespace hadal {

inline constexpr int kInterruptedExitCode = 130;

// From now on ctrl-C ends the process with kInterruptedExitCode.
void HandleInterrupts();

// While it lives ctrl-C sets a flag instead, and interrupts reads from a terminal. One at a time;
// REQUIRES: HandleInterrupts() was called.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // True once per ctrl-C or more of them.
  bool TakeInterrupt();
};

}  // namespace hadal
