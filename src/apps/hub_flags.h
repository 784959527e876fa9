// Where hubs, their token and pulled models are: what the environment says. The names are those
// that other programs for the same hubs read.
#pragma once

#include <optional>
#include <string>

#include "hub/http_client.h"
#include "hub/model_store.h"

namespace hadal {

// HF_ENDPOINT, or https://huggingface.co. The token of HF_TOKEN, HUGGING_FACE_HUB_TOKEN, or of the
// file at HF_TOKEN_PATH, $HF_HOME/token, $XDG_CACHE_HOME/huggingface/token or
// ~/.cache/huggingface/token (of no file with HF_HUB_DISABLE_IMPLICIT_TOKEN). Whom to trust: the
// file at CURL_CA_BUNDLE, REQUESTS_CA_BUNDLE or SSL_CERT_FILE. kInvalidArgument.
Result<HttpSettings> HubSettings();

// In HADAL_HUB_DIR, $XDG_DATA_HOME/hadal/models or ~/.local/share/hadal/models.
ModelStore PulledModels();

}  // namespace hadal
