// The files of the page, embedded when the program is built (CMakeLists.txt, hadal_embed).
#pragma once

#include <span>
#include <string_view>

namespace hadal {

struct WebFile {
  std::string_view path;  // "/index.html"
  std::string_view body;
};

std::span<const WebFile> WebFiles();

// The file behind a request's path, "/" being the index; null when there is none.
const WebFile* FindWebFile(std::string_view path);

// By the ending of its name.
std::string_view ContentTypeOf(std::string_view path);

}  // namespace hadal
