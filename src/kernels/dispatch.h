// Which kernel tables this build has and this machine can run. The processor is asked once.
#pragma once

#include <span>
#include <string_view>

#include "kernels/kernel_table.h"

namespace hadal {

struct KernelSet {
  const char* name;
  const KernelTable* table;  // null when this machine cannot run it
};

// All sets of this build, in the order of UsableKernels().
std::span<const KernelSet> BuiltKernelSets();

// From the slowest ("reference") to the fastest. Every pointer of every table is set.
std::span<const KernelTable* const> UsableKernels();

// The last of them.
const KernelTable& BestKernels();

// The table of that name, or null when this build or this machine has none.
const KernelTable* FindKernels(std::string_view name);

}  // namespace hadal
