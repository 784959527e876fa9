#include "sys/mapping_registry.h"

#include <atomic>
#include <csignal>
#include <cstring>
#include <mutex>

#include <sys/stat.h>
#include <unistd.h>

namespace hadal {

// `start` is zero while the entry is free. A handler may read an entry that is just being changed;
// at worst it then names no file.
struct Mapping {
  std::atomic<uintptr_t> start{0};
  std::atomic<int64_t> size{0};
  char path[1024] = {};
  Mapping* next = nullptr;  // set before the entry is published
};

namespace {

std::atomic<Mapping*> first_mapping{nullptr};
std::mutex registry_mutex;

// Pieces of one line, put together without memory or locale: safe in a signal handler.
class Line {
 public:
  void Add(const char* text) {
    while (*text != '\0' && length_ < sizeof(text_)) text_[length_++] = *text++;
  }
  void Add(int64_t number) {
    char digits[21] = {};
    int at = 20;
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    Add(digits + at);
  }
  void Write() const {
    for (size_t done = 0; done < length_;) {
      const ssize_t written = write(STDERR_FILENO, text_ + done, length_ - done);
      if (written <= 0) return;
      done += static_cast<size_t>(written);
    }
  }

 private:
  char text_[1400];
  size_t length_ = 0;
};

const Mapping* FindMapping(uintptr_t address) {
  for (const Mapping* m = first_mapping.load(); m != nullptr; m = m->next) {
    const uintptr_t start = m->start.load();
    if (start == 0 || address < start) continue;
    if (address - start < static_cast<uintptr_t>(m->size.load())) return m;
  }
  return nullptr;
}

void OnBusError(int signal, siginfo_t* info, void*) {
  const Mapping* mapping = FindMapping(reinterpret_cast<uintptr_t>(info->si_addr));
  if (mapping == nullptr) {
    // Not ours: the instruction runs again and the default action ends the process.
    std::signal(signal, SIG_DFL);
    return;
  }
  // One line is enough when several threads run into the same hole.
  static std::atomic_flag is_reported = ATOMIC_FLAG_INIT;
  if (is_reported.test_and_set()) {
    for (;;) pause();
  }
  Line line;
  line.Add("hadal: error: ");
  line.Add(mapping->path);
  struct stat now = {};
  const int64_t expected = mapping->size.load();
  if (stat(mapping->path, &now) == 0 && now.st_size < expected) {
    line.Add(": size: expected the ");
    line.Add(expected);
    line.Add(" bytes that it had when it was opened, found ");
    line.Add(static_cast<int64_t>(now.st_size));
    line.Add(": the file was truncated while in use\n");
  } else {
    line.Add(
        ": content: expected readable, found a page that the system could not read while the ");
    line.Add("file was in use (truncated, replaced, or its disk failed)\n");
  }
  line.Write();
  _exit(1);
}

}  // namespace

Mapping* RegisterMapping(const void* data, int64_t size, const std::string& path) {
  const std::lock_guard lock(registry_mutex);
  Mapping* entry = first_mapping.load();
  while (entry != nullptr && entry->start.load() != 0) entry = entry->next;
  const bool is_new = entry == nullptr;
  if (is_new) entry = new Mapping;
  std::strncpy(entry->path, path.c_str(), sizeof(entry->path) - 1);
  entry->size.store(size);
  entry->start.store(reinterpret_cast<uintptr_t>(data));
  if (is_new) {
    entry->next = first_mapping.load();
    first_mapping.store(entry);
  }
  return entry;
}

void UnregisterMapping(Mapping* mapping) {
  const std::lock_guard lock(registry_mutex);
  mapping->start.store(0);
}

void InstallMappingFaultHandler() {
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace hadal
