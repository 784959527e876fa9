#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace hadal {

void CheckFailed(const char* file, int line, const char* expression) {
  std::fprintf(stderr, "hadal: check failed at %s:%d: %s\n", file, line, expression);
  std::fflush(stderr);
  std::abort();
}

}  // namespace hadal
