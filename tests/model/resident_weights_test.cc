#include "model/resident_weights.h"

#include <cstring>

#include <gtest/gtest.h>

#include "model/model.h"
#include "tests/support/golden_model.h"

namespace hadal {
namespace {

struct Bound {
  std::unique_ptr<Checkpoint> checkpoint;
  ModelWeights weights;
};

Bound Bind(const std::string& name) {
  Bound bound;
  bound.checkpoint = std::move(Checkpoint::Open(GoldenModelPath(name))).value();
  const ModelConfig config =
      std::move(ModelConfig::Parse(bound.checkpoint->config(), name)).value();
  bound.weights = std::move(BindWeights(*bound.checkpoint, config)).value();
  return bound;
}

bool SameBytes(const QuantizedMatrix& a, const QuantizedMatrix& b) {
  return a.rows == b.rows && a.cols == b.cols && a.format == b.format &&
         std::memcmp(a.data, b.data,
                     static_cast<size_t>(int64_t{a.rows} * a.cols * ElementBytes(a.format))) == 0;
}

TEST(ResidentWeights, CopiesEveryMatrixOnceAndTheFileStaysReadable) {
  for (const char* name : {"v2-lite-f32", "v3-fp8"}) {
    const Bound mapped = Bind(name);
    Bound copied = Bind(name);
    const int64_t bytes = ResidentBytes(copied.weights);
    const std::unique_ptr<Backend> backend = std::move(CreateBackend({})).value();
    ASSERT_TRUE(MakeResident(*copied.checkpoint, backend.get(), &copied.weights).ok());
    EXPECT_EQ(copied.weights.resident.bytes(), bytes);
    const auto is_inside = [&](const QuantizedMatrix& matrix) {
      const std::byte* begin = copied.weights.resident.data();
      return matrix.data >= begin && matrix.data < begin + bytes;
    };
    for (size_t layer = 0; layer < mapped.weights.layers.size(); ++layer) {
      const LayerWeights& a = mapped.weights.layers[layer];
      const LayerWeights& b = copied.weights.layers[layer];
      EXPECT_TRUE(SameBytes(a.attention.kv_b, b.attention.kv_b)) << name << " " << layer;
      EXPECT_TRUE(is_inside(b.attention.kv_b));
      ASSERT_EQ(a.feed_forward.expert_up.size(), b.feed_forward.expert_up.size());
      for (size_t e = 0; e < a.feed_forward.expert_up.size(); ++e) {
        EXPECT_TRUE(SameBytes(a.feed_forward.expert_up[e], b.feed_forward.expert_up[e]));
        EXPECT_TRUE(is_inside(b.feed_forward.expert_up[e]));
      }
    }
    EXPECT_TRUE(SameBytes(mapped.weights.head, copied.weights.head)) << name;
  }
}

TEST(ResidentWeights, AModelThatIsTooLargeStaysMapped) {
  const std::unique_ptr<Backend> backend = std::move(CreateBackend({})).value();
  Bound bound = Bind("v2-lite-f32");
  EXPECT_GT(ResidentBytes(bound.weights), 0);
  for (const int64_t limit : {ResidentBytes(bound.weights) - 1, ResidentBytes(bound.weights)}) {
    auto checkpoint = std::move(Checkpoint::Open(GoldenModelPath("v2-lite-f32"))).value();
    EXPECT_TRUE(
        Model::Load(std::move(checkpoint), {.max_resident_bytes = limit}, backend.get()).ok());
  }
}

}  // namespace
}  // namespace hadal
