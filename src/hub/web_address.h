// What of an address decides who gets the token, and where a redirect leads.
#pragma once

#include <string>

#include "base/status.h"

namespace hadal {

struct WebAddress {
  std::string url;     // in full
  std::string origin;  // "https://host:443": lower case, with the port
  bool is_encrypted = false;
  bool has_query = false, has_fragment = false;
};

// kInvalidArgument unless it is http or https, with a host and without user and password.
Result<WebAddress> ParseWebAddress(const std::string& url);

// Where a Location or Link header leads, seen from `base`. Errors as ParseWebAddress; a step from
// https down to http is refused.
Result<WebAddress> ResolveWebAddress(const WebAddress& base, const std::string& reference);

}  // namespace hadal
