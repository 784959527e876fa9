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

// Where a model lies that is named as on a command line: `path` itself when something is there or
// when it is no name of a pulled model; else "ORG/NAME[@REVISION][/FILE]" among the pulled models,
// of a folder without config.json its only GGUF file (or the first part of it).
std::string LocateModel(const std::string& path);

// The folder with the small files of a model: `path` itself, or where it lies when it is a file;
// the bundled model when it is empty. Names of pulled models are found. kNotFound when there is
// nothing at `path`.
Result<std::string> ModelFolderPath(const std::string& path);

}  // namespace hadal
