#include "model/model_config.h"

namespace hadal {}  // namespace hadal
