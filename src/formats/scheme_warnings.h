// Where the configuration of a packed export and its tensors disagree.
#pragma once

#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/packed_scheme.h"

namespace hadal {

// One sentence for each kind of disagreement, with the first module and their number; the tensors
// win. Of "re:" patterns those are judged that consist of literal text and ".*".
std::vector<std::string> WarnOfScheme(const Checkpoint& checkpoint, const PackedScheme& scheme);

}  // namespace hadal
