#include "apps/interrupt.h"

#include <atomic>
#include <csignal>

#include <unistd.h>

namespace hadal {
namespace {

// The only state that a signal handler may touch; one process, one terminal.
std::atomic<bool> is_guarded{false}, was_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void OnInterrupt(int) {
  if (!is_guarded) _exit(kInterruptedExitCode);
  was_interrupted = true;
}

}  // namespace

void HandleInterrupts() {
  struct sigaction action = {};
  action.sa_handler = &OnInterrupt;  // without SA_RESTART: a read from the terminal ends
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

InterruptGuard::InterruptGuard() {
  was_interrupted = false;
  is_guarded = true;
}

InterruptGuard::~InterruptGuard() { is_guarded = false; }

bool InterruptGuard::TakeInterrupt() { return was_interrupted.exchange(false); }

}  // namespace hadal
