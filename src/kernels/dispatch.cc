#include "kernels/dispatch.h"

#include <array>

#include "kernels/sets.h"
#include "sys/machine.h"

namespace hadal {
namespace {

constexpr size_t kMaxSets = 3;

// Made once.
struct KernelSets {
  std::array<KernelTable, kMaxSets> tables = {};
  std::array<KernelSet, kMaxSets> built = {};
  std::array<const KernelTable*, kMaxSets> usable = {};
  size_t num_built = 0, num_usable = 0;

  KernelSets() {
    AddUsable(ReferenceKernels());
    [[maybe_unused]] const ProcessorFeatures features = DetectProcessorFeatures();
#if defined(HADAL_KERNELS_AVX2)  // set by hadal_isa() where the set is built
    if (features.avx2_fma_f16c) {
      AddUsable(Avx2Kernels(*usable[num_usable - 1]));
    } else {
      built[num_built++] = {"avx2", nullptr};
    }
#endif
#if defined(HADAL_KERNELS_AVX512)
    if (features.avx2_fma_f16c && features.avx512) {
      AddUsable(Avx512Kernels(*usable[num_usable - 1]));
    } else {
      built[num_built++] = {"avx512", nullptr};
    }
#endif
  }
  KernelSets(const KernelSets&) = delete;  // it points into itself
  KernelSets& operator=(const KernelSets&) = delete;

  void AddUsable(const KernelTable& table) {
    tables[num_usable] = table;
    usable[num_usable] = &tables[num_usable];
    built[num_built++] = {table.name, usable[num_usable++]};
  }
};

const KernelSets& Sets() {
  static const KernelSets sets;
  return sets;
}

}  // namespace

std::span<const KernelSet> BuiltKernelSets() { return {Sets().built.data(), Sets().num_built}; }

std::span<const KernelTable* const> UsableKernels() {
  return {Sets().usable.data(), Sets().num_usable};
}

const KernelTable& BestKernels() { return *UsableKernels().back(); }

const KernelTable* FindKernels(std::string_view name) {
  for (const KernelTable* table : UsableKernels()) {
    if (name == table->name) return table;
  }
  return nullptr;
}

}  // namespace hadal
