// Random checkpoints in the published layout, for any sizes: what a release would look like if it
// were tiny. The same configuration, options and seed give the same bytes everywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace hadal {

enum class ModelFamily { kV2Lite, kV2, kV3, kV32 };

// A small, valid config.json of a family, to be changed key by key: hidden size 64, 2 heads,
// 3 layers of which the first is dense, 8 experts, YaRN with factor 4 over 64 positions; V3 and
// V3.2 with an MTP module; V3.2 with an indexer that picks 8 positions.
Json SmallConfig(ModelFamily family);

// As of which release the weights are stored. The FP8 kinds hold what releases hold in FP8 (every
// projection, experts and the indexer's wq_b and wk) with one scale per 128 x 128 block, and the
// rest in BF16; kFp8PowersOfTwo restricts the scales to powers of two (scale_fmt ue8m0).
enum class WeightStorage { kF32, kBF16, kF16, kFp8, kFp8PowersOfTwo };

struct RandomModelOptions {
  WeightStorage storage = WeightStorage::kF32;
  uint64_t seed = 1;
  int num_shards = 1;          // above 1: shards with an index; a scale is never in its weight's
  bool has_mtp_copies = true;  // the MTP module's own embedding and head
  bool is_misaligned = false;  // the data begin at an odd offset of their file
  std::set<std::string> left_out = {};  // names that are not written
  // Changes the values of a tensor before they are stored, when set.
  std::function<void(std::string_view name, std::span<float> values)> edit = {};
};

// Writes config.json (`config`, with a quantization_config in the FP8 kinds) and the weights that
// it asks for into `folder`, which exists. Weights are scaled so that activations and logits are of
// the order of 1, routing is uneven, and neighbouring scale blocks differ. Errors are those of the
// configuration and of the file system.
Status WriteRandomModel(const Json& config, const RandomModelOptions& options,
                        const std::string& folder);

}  // namespace hadal
