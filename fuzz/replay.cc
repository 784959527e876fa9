// Runs a fuzz target without libFuzzer: every seed as it is, then a fixed number of mutated seeds
// from a fixed random stream. It finds less than a search that is led by coverage, but it needs no
// clang, takes the same time and tries the same inputs on each run, so it can be a test.
// Usage: NAME_fuzz [--rounds N] [--seed S] FILE_OR_FOLDER ...
// A folder gives its files, a .jsonl file its lines.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxSeedBytes = 64 << 10;

// What runs now, for the message of a run that dies.
std::string now;

void SayWhatRan(int) {
  static constexpr char kText[] = "replay: died at ";
  [[maybe_unused]] auto written = ::write(2, kText, sizeof(kText) - 1);
  written = ::write(2, now.data(), now.size());
  std::_Exit(1);
}

void AddSeeds(const fs::path& path, std::vector<std::string>* seeds) {
  if (fs::is_directory(path)) {
    for (const auto& entry : fs::recursive_directory_iterator(path))
      if (entry.is_regular_file()) AddSeeds(entry.path(), seeds);
    return;
  }
  std::ifstream file(path, std::ios::binary);
  if (path.extension() == ".jsonl") {
    for (std::string line; std::getline(file, line);)
      if (line.size() <= kMaxSeedBytes) seeds->push_back(std::move(line));
    return;
  }
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (text.size() > kMaxSeedBytes) text.resize(kMaxSeedBytes);
  seeds->push_back(std::move(text));
}

class Mutator {
 public:
  Mutator(const std::vector<std::string>* seeds, uint64_t seed) : seeds_(*seeds), random_(seed) {}

  std::string Next() {
    std::string text = seeds_[Below(seeds_.size())];
    for (size_t step = 1 + Below(6); step > 0; --step) Mutate(&text);
    if (text.size() > kMaxSeedBytes) text.resize(kMaxSeedBytes);
    return text;
  }

 private:
  size_t Below(size_t limit) { return static_cast<size_t>(random_() % limit); }

  void Mutate(std::string* text) {
    static constexpr uint8_t kBytes[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '"', '\\', '{', '}',
                                         '[',  ']',  ',',  '-',  '9',  'e', '<',  '|', '\n'};
    const size_t place = Below(text->size() + 1);
    const size_t length = Below(17) + 1;
    switch (Below(7)) {
      case 0:  // one bit
        if (place < text->size())
          (*text)[place] = static_cast<char>((*text)[place] ^ (1 << Below(8)));
        break;
      case 1:
        if (place < text->size())
          (*text)[place] = static_cast<char>(kBytes[Below(std::size(kBytes))]);
        break;
      case 2:
        text->insert(text->begin() + static_cast<std::ptrdiff_t>(place),
                     static_cast<char>(kBytes[Below(std::size(kBytes))]));
        break;
      case 3:
        text->erase(place, length);
        break;
      case 4:  // a piece of it twice
        text->insert(Below(text->size() + 1), text->substr(place, length));
        break;
      case 5: {  // a piece of another seed
        const std::string& other = seeds_[Below(seeds_.size())];
        text->insert(place, other.substr(Below(other.size() + 1), 4 * length));
        break;
      }
      default:
        text->resize(place);  // cut short
    }
  }

  const std::vector<std::string>& seeds_;
  std::mt19937_64 random_;
};

void RunOne(const std::string& text) {
  // A copy of exactly its size, so that the address sanitizer sees a read past its end.
  const std::vector<uint8_t> bytes(text.begin(), text.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  size_t num_rounds = 2000;
  uint64_t seed = 1;
  std::vector<std::string> seeds = {""};
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
      num_rounds = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (fs::exists(argv[i])) {
      AddSeeds(argv[i], &seeds);
    } else {
      std::fprintf(stderr, "%s: expected a file or a folder with seeds, found nothing\n", argv[i]);
      return 2;
    }
  }
  std::signal(SIGABRT, SayWhatRan);
  std::signal(SIGSEGV, SayWhatRan);
  for (size_t i = 0; i < seeds.size(); ++i) {
    now = "seed " + std::to_string(i) + "\n";
    RunOne(seeds[i]);
  }
  Mutator mutator(&seeds, seed);
  for (size_t round = 0; round < num_rounds; ++round) {
    now = "round " + std::to_string(round) + " of --seed " + std::to_string(seed) + "\n";
    RunOne(mutator.Next());
  }
  std::printf("%zu seeds and %zu mutated ones: nothing found\n", seeds.size(), num_rounds);
}
