// Where a command finds its model.
#pragma once

#include <string>

#include "base/status.h"

namespace hadal {

// The folder of the bundled model: $HADAL_MODELS_DIR/tiny, or the first that exists of the places
// beside the executable, under its prefix, and in the source tree it was built from. The last of
// them when none does, so that the error of opening it names a place.
std::string BundledModelPath();

// The text that quantisation weighs errors by when none is given; found in the same places.
std::string BundledCalibrationPath();

// The folder with the small files of a model: `path` itself, or where it lies when it is a file;
// the bundled model when it is empty. kNotFound when there is nothing at `path`.
Result<std::string> ModelFolderPath(const std::string& path);

}  // namespace hadal
