#include "kernels/dispatch.h"

#include <array>

#include "kernels/sets.h"
#include "sys/machine.h"

namespace hadal {
namespace {

// The tables that this machine can run, made once.
struct UsableSets {
  std::array<KernelTable, 2> tables = {};
  std::array<const KernelTable*, 2> pointers = {};
  size_t count = 0;

  void Add(const KernelTable& table) {
    tables[count] = table;
    pointers[count] = &tables[count];
    ++count;
  }

  UsableSets() {
    Add(ReferenceKernels());
    [[maybe_unused]] const ProcessorFeatures features = DetectProcessorFeatures();
#if defined(HADAL_KERNELS_AVX2)  // set by hadal_isa() where the set is built
    if (features.avx2_fma_f16c) Add(Avx2Kernels(tables[count - 1]));
#endif
  }
};

const UsableSets& Sets() {
  static const UsableSets sets;
  return sets;
}

}  // namespace

std::span<const KernelTable* const> UsableKernels() {
  return {Sets().pointers.data(), Sets().count};
}

const KernelTable& BestKernels() { return *UsableKernels().back(); }

const KernelTable* FindKernels(std::string_view name) {
  for (const KernelTable* table : UsableKernels()) {
    if (name == table->name) return table;
  }
  return nullptr;
}

}  // namespace hadal
