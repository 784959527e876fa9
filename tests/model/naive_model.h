// The equations of DeepSeek V2, V3 and V3.2 in plain loops and double precision: keys and values
// per head, no cache, no batch, one sequence. Written from the specification (sections 3 to 7) and
// not from src/model, so that two derivations must agree. The only thing shared with it is the
// parser of config.json.
#pragma once

#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "model/model_config.h"

namespace hadal {

struct NaiveMatrix {
  int rows = 0, cols = 0;
  std::vector<double> values;  // row-major

  NaiveMatrix() = default;
  NaiveMatrix(int r, int c) : rows(r), cols(c), values(static_cast<size_t>(r) * c, 0.0) {}
  double* row(int r) { return values.data() + static_cast<size_t>(r) * cols; }
  const double* row(int r) const { return values.data() + static_cast<size_t>(r) * cols; }
};

// Which positions each query of a layer attends to; for tests of the selection.
using NaiveSelection = std::vector<std::vector<int>>;

struct NaiveOutput {
  NaiveMatrix logits;      // [n, vocab_size]
  NaiveMatrix mtp_logits;  // [n - 1, vocab_size]; row i: token i+1 embedded beside the hidden state
                           // of token i. No rows without an MTP module.
  // How far the closest choice of groups, experts or positions is from falling the other way, as a
  // share of the scores' size. Below about 1e-5 float32 may choose otherwise.
  double clearest_choice_at_least = std::numeric_limits<double>::infinity();
  std::vector<NaiveSelection> selections;  // per layer, of the main model; empty without an indexer
};

class NaiveModel {
 public:
  // Reads every tensor of the published layout that the configuration asks for, as double.
  // kCorrupt for a tensor that is missing or has another shape.
  static Result<NaiveModel> Load(const Checkpoint& checkpoint);

  // REQUIRES: `tokens` is not empty; ids are below vocab_size.
  NaiveOutput Run(std::span<const int> tokens) const;

  const ModelConfig& config() const { return config_; }

 private:
  explicit NaiveModel(ModelConfig config) : config_(std::move(config)) {}

  Status LoadLayer(const Checkpoint& checkpoint, int layer);
  Status LoadMtp(const Checkpoint& checkpoint);
  Status LoadTensor(const Checkpoint& checkpoint, const std::string& name, int rows, int cols);
  const NaiveMatrix& W(const std::string& name) const { return weights_.at(name); }
  bool Has(const std::string& name) const { return weights_.contains(name); }

  // Each takes and returns one row per token.
  void DecoderLayer(int layer, NaiveMatrix* h, NaiveOutput* out) const;
  NaiveMatrix Attention(const std::string& prefix, const NaiveMatrix& x, NaiveOutput* out,
                        NaiveSelection* selection) const;
  NaiveSelection SelectPositions(const std::string& prefix, const NaiveMatrix& x,
                                 const NaiveMatrix& cq, NaiveOutput* out) const;
  NaiveMatrix Mixture(const std::string& prefix, const NaiveMatrix& x, NaiveOutput* out) const;
  NaiveMatrix SwiGlu(const std::string& prefix, const NaiveMatrix& x) const;

  std::vector<double> Frequencies() const;
  double CosSinMultiplier() const;
  double SoftmaxScale() const;

  ModelConfig config_;
  std::map<std::string, NaiveMatrix> weights_;  // a vector is one row
};

}  // namespace hadal
