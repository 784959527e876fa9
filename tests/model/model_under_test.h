// A random model on disk with its naive twin, and the comparison of hadal with that twin in every
// way of computing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/types.h"
#include "runner/model_runner.h"
#include "tests/model/naive_model.h"
#include "tests/support/random_model.h"
#include "tests/support/temp_dir.h"

namespace hadal {

// A sequence in which no choice of experts or positions is a near tie, and its true logits.
struct ClearSequence {
  std::vector<TokenId> tokens;
  NaiveOutput expected;
};

class ModelUnderTest {
 public:
  // Fails the test when the model cannot be written or read back; then is_sound() is false.
  ModelUnderTest(const Json& config, const RandomModelOptions& options);
  // A model that lies on disk already.
  explicit ModelUnderTest(std::string path);

  bool is_sound() const { return naive_ != nullptr; }
  const std::string& path() const { return path_; }
  const NaiveModel& naive() const { return *naive_; }

  // `length` random tokens whose closest choice is at least 3e-5 of the scores' size: more than
  // float32 can move it. Sequences with closer choices are passed over and counted in the test's
  // properties; 50 of them in a row fail the test. REQUIRES: is_sound().
  ClearSequence DrawSequence(int length, uint64_t seed = 1) const;
  // Exactly these tokens. Fails the test when a choice is closer than that.
  ClearSequence MakeSequence(std::vector<int> tokens) const;

 private:
  void Load();

  TempDir dir_;
  std::string path_;
  std::unique_ptr<NaiveModel> naive_;
};

// One way of computing the same logits.
struct Way {
  std::string kernels;
  AttentionForm form = AttentionForm::kAuto;
  int chunk = 1;
};

// Every usable kernel set, the three forms of attention, and each of `chunks`; the reference
// kernels, which are slow, with the middle one only.
std::vector<Way> AllWays(const std::vector<int>& chunks);

RunnerOptions OptionsOf(const ModelUnderTest& model, const Way& way);

// Every row of hadal's logits and MTP logits is within 1e-4 of the naive model's, as a share of the
// row's largest |logit|, and finite. REQUIRES: model.is_sound().
void ExpectAgreement(const ModelUnderTest& model, const ClearSequence& sequence,
                     const std::vector<Way>& ways);

}  // namespace hadal
