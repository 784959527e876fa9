// Which files are mapped where, in a form that a signal handler may read.
//
// The exception to the rule against global state: a signal has no other way to know. Entries are
// never freed, only reused, and a handler reads them without a lock.
#pragma once

#include <cstdint>
#include <string>

namespace hadal {

struct Mapping;

// Any thread. The path is kept until Unregister.
Mapping* RegisterMapping(const void* data, int64_t size, const std::string& path);
void UnregisterMapping(Mapping* mapping);

// From now on, touching a page of a mapped file that is gone (the file was cut short, or its disk
// failed) ends the process with code 1 and one line on standard error that names the file, instead
// of a bus error. Other bus errors stay what they were. Called by programs, not by libraries.
void InstallMappingFaultHandler();

}  // namespace hadal
