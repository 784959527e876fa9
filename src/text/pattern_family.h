// Which published set of pre-tokenizer patterns a tokenizer.json holds, whatever way it spells them
// (escapes or the characters themselves, order inside a class).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/pre_tokenizer.h"

namespace hadal {

// The pattern in one spelling: character classes as sorted ranges of code points and sorted
// properties, everything else escaped the same way. Equal results mean equal patterns; a pattern in
// a form that is not understood comes back as it was.
std::string CanonicalPattern(std::string_view pattern);

// The family whose patterns are these, in this order. kUnsupported names the first pattern that
// fits no family. `what` names the file.
Result<PreTokenizerFamily> RecognisePatterns(std::span<const std::string> patterns,
                                             std::string_view what);

// The patterns of a family, as they stand in a tokenizer.json.
std::vector<std::string> PublishedPatterns(PreTokenizerFamily family);

}  // namespace hadal
