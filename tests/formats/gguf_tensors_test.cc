#include "formats/gguf_tensors.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hadal {
namespace {

using testing::HasSubstr;

class GgufTensorNames : public testing::Test {
 protected:
  // A tensor of Q8_0 with bytes of its own.
  GgufTensor Make(std::string_view name, std::vector<int64_t> sizes) {
    GgufTensor tensor = {
        .name = name, .type = *FindGgmlType(DType::kQ8_0), .sizes = std::move(sizes), .bytes = {}};
    bytes_.emplace_back(static_cast<size_t>(tensor.num_elements() / 32 * 34));
    tensor.bytes = bytes_.back();
    return tensor;
  }
  const TensorInfo* Find(const std::string& name) const {
    const auto it = std::ranges::find(found_.tensors, name, &TensorInfo::name);
    return it == found_.tensors.end() ? nullptr : &*it;
  }
  Status Add(const std::vector<GgufTensor>& tensors) {
    return AddGgufTensors(tensors, 0, "some.gguf", &found_);
  }

  std::vector<std::vector<std::byte>> bytes_;
  GgufTensors found_;
};

TEST_F(GgufTensorNames, AStackIsCutIntoExperts) {
  const GgufTensor stack = Make("blk.7.ffn_down_exps.weight", {64, 32, 3});
  ASSERT_TRUE(Add({stack}).ok());
  ASSERT_EQ(found_.tensors.size(), 3u);
  const TensorInfo* last = Find("model.layers.7.mlp.experts.2.down_proj.weight");
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(last->shape, (std::vector<int64_t>{32, 64}));
  EXPECT_EQ(last->bytes.data(), stack.bytes.data() + 2 * stack.bytes.size() / 3);
  EXPECT_EQ(last->bytes.size(), stack.bytes.size() / 3);
}

TEST_F(GgufTensorNames, AFusedStackHasTheGateFirst) {
  const GgufTensor stack = Make("blk.1.ffn_gate_up_exps.weight", {32, 8, 2});
  ASSERT_TRUE(Add({stack}).ok());
  const size_t piece = stack.bytes.size() / 4;
  EXPECT_EQ(Find("model.layers.1.mlp.experts.0.gate_proj.weight")->bytes.data(),
            stack.bytes.data());
  EXPECT_EQ(Find("model.layers.1.mlp.experts.0.up_proj.weight")->bytes.data(),
            stack.bytes.data() + piece);
  EXPECT_EQ(Find("model.layers.1.mlp.experts.1.gate_proj.weight")->bytes.data(),
            stack.bytes.data() + 2 * piece);
  EXPECT_EQ(Find("model.layers.1.mlp.experts.1.up_proj.weight")->shape,
            (std::vector<int64_t>{4, 32}));
}

TEST_F(GgufTensorNames, AStackThatCannotBeCutIsRefused) {
  EXPECT_THAT(Add({Make("blk.1.ffn_up_exps.weight", {32, 8})}).message(),
              HasSubstr("some.gguf: tensor \"blk.1.ffn_up_exps.weight\""));
  EXPECT_FALSE(Add({Make("blk.1.ffn_gate_up_exps.weight", {32, 7, 2})}).ok());
}

TEST_F(GgufTensorNames, NamesOfTheThreeFormsOfMla) {
  ASSERT_TRUE(Add({Make("blk.0.attn_kv_b.weight", {32, 64})}).ok());
  EXPECT_EQ(found_.mla_form, GgufMlaForm::kLegacy);
  EXPECT_NE(Find("model.layers.0.self_attn.kv_b_proj.weight"), nullptr);
  ASSERT_TRUE(
      Add({Make("blk.0.attn_k_b.weight", {32, 64}), Make("blk.0.attn_v_b.weight", {32, 64})}).ok());
  EXPECT_EQ(found_.mla_form, GgufMlaForm::kBoth);
  EXPECT_NE(Find("model.layers.0." + std::string(kSplitKeyName)), nullptr);
}

TEST_F(GgufTensorNames, TheMtpLayerTakesTheLastNormWhereItHasNone) {
  ASSERT_TRUE(
      Add({Make("output_norm.weight", {32}), Make("blk.2.nextn.eh_proj.weight", {64, 32})}).ok());
  AddMissingMtpNorm(2, &found_);
  EXPECT_EQ(Find("model.layers.2.shared_head.norm.weight")->bytes.data(),
            Find("model.norm.weight")->bytes.data());
  AddMissingMtpNorm(2, &found_);
  EXPECT_EQ(found_.tensors.size(), 3u);
}

TEST_F(GgufTensorNames, OtherTensorsKeepTheirNames) {
  ASSERT_TRUE(Add({Make("rope_freqs.weight", {32}), Make("blk.x.attn_q.weight", {32, 1}),
                   Make("blk.99999999999.attn_q.weight", {32, 1})})
                  .ok());
  for (const char* name :
       {"rope_freqs.weight", "blk.x.attn_q.weight", "blk.99999999999.attn_q.weight"}) {
    EXPECT_NE(Find(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace hadal
