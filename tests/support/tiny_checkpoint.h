// A checkpoint with small random weights for any config, to be bent before it is written.
#pragma once

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "formats/safetensors_writer.h"
#include "model/weight_names.h"
#include "tensor/scalar.h"
#include "tests/support/temp_dir.h"

namespace hadal {

class TinyCheckpoint {
 public:
  struct Tensor {
    DType dtype = DType::kF32;
    std::vector<int64_t> shape;
    std::vector<std::byte> bytes;
  };

  // Every tensor of `config` in F32, the MTP layer included where the config has one.
  explicit TinyCheckpoint(const Json& config) : config_(config) {
    Result<ModelConfig> parsed = ModelConfig::Parse(config, "config.json");
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
    if (!parsed.ok()) return;
    const auto add = [this](const ExpectedWeight& weight) { AddRandom(weight.name, weight.shape); };
    ForEachWeight(*parsed, add);
    if (parsed->num_nextn_predict_layers > 0) ForEachMtpWeight(*parsed, add);
  }

  std::map<std::string, Tensor>& tensors() { return tensors_; }
  Json& config() { return config_; }

  void AddRandom(const std::string& name, const std::vector<int64_t>& shape) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    std::vector<float> values(static_cast<size_t>(count));
    std::uniform_real_distribution<float> draw(-1.0f, 1.0f);
    for (float& value : values) value = draw(random_);
    Set(name, DType::kF32, shape, std::as_bytes(std::span(values)));
  }
  void Set(const std::string& name, DType dtype, const std::vector<int64_t>& shape,
           std::span<const std::byte> bytes) {
    tensors_[name] = {dtype, shape, {bytes.begin(), bytes.end()}};
  }
  // Number of tensors whose name begins so.
  int Erase(std::string_view prefix) {
    return static_cast<int>(
        std::erase_if(tensors_, [&](const auto& item) { return item.first.starts_with(prefix); }));
  }

  // config.json and model.safetensors.
  void Write(const TempDir& dir) const {
    dir.Write("config.json", DumpJson(config_));
    WriteFile(dir, "model.safetensors", 0, 1);
  }
  // config.json, the index and `count` shards that take the tensors in turn.
  void WriteShards(const TempDir& dir, int count) const {
    dir.Write("config.json", DumpJson(config_));
    Json index = {{"metadata", Json::object()}, {"weight_map", Json::object()}};
    for (int shard = 0; shard < count; ++shard) {
      const std::string name = ShardName(shard, count);
      for (const std::string& tensor : WriteFile(dir, name, shard, count)) {
        index["weight_map"][tensor] = name;
      }
    }
    dir.Write("model.safetensors.index.json", DumpJson(index));
  }
  static std::string ShardName(int shard, int count) {
    return "model-0000" + std::to_string(shard + 1) + "-of-0000" + std::to_string(count) +
           ".safetensors";
  }

 private:
  // Every count-th tensor from `first`; returns their names.
  std::vector<std::string> WriteFile(const TempDir& dir, const std::string& name, int first,
                                     int count) const {
    std::vector<SafetensorsTensor> chosen;
    std::vector<std::string> names;
    int i = 0;
    for (const auto& [tensor, content] : tensors_) {
      if (i++ % count != first) continue;
      chosen.push_back({{tensor, content.dtype, content.shape}, content.bytes});
      names.push_back(tensor);
    }
    const Status status = WriteSafetensors(dir.File(name), chosen);
    EXPECT_TRUE(status.ok()) << status.message();
    return names;
  }

  Json config_;
  std::map<std::string, Tensor> tensors_;
  std::mt19937 random_{1};
};

}  // namespace hadal
