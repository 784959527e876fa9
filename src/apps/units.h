// Numbers for people.
#pragma once

#include <cstdint>
#include <string>

namespace hadal {

inline constexpr double kGiga = 1e9;

// "512 bytes", "30.5 MB", "689 GB": powers of 1000, three digits.
std::string FormatBytes(int64_t bytes);

// "14.8 M", "671 B": powers of 1000, three digits.
std::string FormatCount(int64_t count);

}  // namespace hadal
