// Checks of our own mistakes: they print the place and the expression, then abort. What the outside
// world gets wrong is a Status instead.
#pragma once

namespace hadal {

[[noreturn]] void CheckFailed(const char* file, int line, const char* expression);

}  // namespace hadal

#define HADAL_CHECK(expression) \
  ((expression) ? static_cast<void>(0) : ::hadal::CheckFailed(__FILE__, __LINE__, #expression))

// For inner code: gone in release builds.
#ifdef NDEBUG
#define HADAL_DCHECK(expression) static_cast<void>(sizeof(!(expression)))
#else
#define HADAL_DCHECK(expression) HADAL_CHECK(expression)
#endif
