// The golden models: small checkpoints with the logits that the reference implementation gives for
// them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/types.h"
#include "formats/checkpoint.h"
#include "runner/logits_runner.h"
#include "tests/support/files.h"

namespace hadal {

inline const std::vector<std::string>& GoldenModelNames() {
  static const std::vector<std::string> names = {
      "v2-lite-f32",        "v2-lite-bf16", "v2-group-f16", "v3-f32",
      "v3-bf16-plain-rope", "v3-fp8",       "v32-f32",      "v32-fp8-ue8m0"};
  return names;
}

// The same as other programs write them: GGUF, compressed-tensors, GPTQ and AWQ.
inline const std::vector<std::string>& GoldenExportNames() {
  static const std::vector<std::string> names = {
      "gguf-lite-legacy", "gguf-lite-mla",       "gguf-v2-groups",
      "gguf-v3-legacy",   "gguf-v3-mla",         "gguf-v3-mtp-two-files",
      "gguf-v32",         "ct-int4-asym-g128",   "ct-int4-asym-g32",
      "ct-int4-g128",     "ct-int4-g32-experts", "ct-int8-channel",
      "gptq-g128",        "gptq-g128-act-order", "awq-gemm-g64",
      "awq-gemm-g64-v3"};
  return names;
}

struct Logits {
  int num_rows = 0, vocab_size = 0;
  std::vector<float> values;
  const float* row(int r) const {
    return values.data() + static_cast<size_t>(r) * static_cast<size_t>(vocab_size);
  }
};

// Both kinds, whole.
struct AllLogits {
  Logits main, mtp;
};

inline AllLogits ComputeLogits(const RunnerOptions& options, const std::vector<TokenId>& tokens) {
  auto runner = LogitsRunner::Create(options, static_cast<int>(tokens.size()));
  AllLogits all;
  if (!runner.ok()) {
    ADD_FAILURE() << runner.status().message();
    return all;
  }
  const Status status = runner.value()->Run(tokens, [&](const LogitsChunk& chunk) {
    Logits& out = chunk.kind == LogitsKind::kMain ? all.main : all.mtp;
    EXPECT_EQ(out.num_rows, chunk.first_row);
    out.num_rows += chunk.num_rows;
    out.vocab_size = chunk.vocab_size;
    out.values.insert(
        out.values.end(), chunk.data,
        chunk.data + static_cast<size_t>(chunk.num_rows) * static_cast<size_t>(chunk.vocab_size));
    return Status::Ok();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return all;
}

struct GoldenSequence {
  std::string name;
  std::vector<TokenId> tokens;
  std::vector<TokenId> greedy;  // what follows
  Logits logits, mtp_logits;    // mtp: no rows where the model has none
  int row_step = 1;             // expected row i is row i * row_step of the sequence
};

inline std::vector<TokenId> TokenList(const Json& ids) {
  std::vector<TokenId> tokens;
  for (const Json& id : ids) tokens.push_back({id.get<int32_t>()});
  return tokens;
}

inline std::string GoldenModelPath(const std::string& name) {
  return GoldenPath("models/" + name + "/model");
}

inline std::vector<GoldenSequence> ReadGoldenSequences(const std::string& name) {
  const Json expected = ReadGoldenJson("models/" + name + "/expected.json");
  auto tensors = Checkpoint::Open(GoldenPath("models/" + name + "/expected.safetensors"));
  if (!tensors.ok()) {
    ADD_FAILURE() << tensors.status().message();
    return {};
  }
  const auto read = [&](const std::string& tensor) {
    Logits logits;
    const TensorInfo* info = tensors.value()->Find(tensor);
    if (info == nullptr) return logits;
    logits.num_rows = static_cast<int>(info->shape[0]);
    logits.vocab_size = static_cast<int>(info->shape[1]);
    logits.values.resize(static_cast<size_t>(info->num_elements()));
    std::memcpy(logits.values.data(), info->bytes.data(), info->bytes.size());
    return logits;
  };
  const Json& greedy = expected["greedy"];  // sequences without a clear continuation are not in it
  std::vector<GoldenSequence> sequences;
  for (const auto& [key, ids] : expected["sequences"].items()) {
    sequences.push_back(
        {.name = key,
         .tokens = TokenList(ids),
         .greedy = greedy.contains(key) ? TokenList(greedy[key]) : std::vector<TokenId>(),
         .logits = read(key + ".logits"),
         .mtp_logits = read(key + ".mtp_logits"),
         .row_step = key == "long" ? 4 : 1});
    EXPECT_GT(sequences.back().logits.num_rows, 0) << name << " " << key;
  }
  return sequences;
}

// The largest difference of a row over the largest |expected logit| of that row, over all expected
// rows.
inline double WorstRow(const Logits& found, const Logits& expected, int row_step) {
  double worst = 0;
  for (int r = 0; r < expected.num_rows; ++r) {
    if (r * row_step >= found.num_rows || found.vocab_size != expected.vocab_size) return INFINITY;
    double difference = 0, largest = 0;
    for (int v = 0; v < expected.vocab_size; ++v) {
      const double want = expected.row(r)[v], got = found.row(r * row_step)[v];
      if (std::isnan(got)) return INFINITY;
      difference = std::max(difference, std::abs(got - want));
      largest = std::max(largest, std::abs(want));
    }
    worst = std::max(worst, difference / largest);
  }
  return worst;
}

}  // namespace hadal
