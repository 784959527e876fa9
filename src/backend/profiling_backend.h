// A backend that passes everything on and notes how long each operation took.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/step_profile.h"

namespace hadal {

// `profile` outlives the result.
std::unique_ptr<Backend> WithProfile(std::unique_ptr<Backend> inner, StepProfile* profile);

}  // namespace hadal
