#include "convert/synthesize.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/types.h"
#include "convert/model_shapes.h"
#include "convert/random_weights.h"
#include "formats/sharded_writer.h"
#include "model/imagined_weights.h"
#include "model/model_config.h"
#include "model/weight_formats.h"
#include "model/weight_names.h"
#include "sys/machine.h"
#include "sys/thread_pool.h"
#include "tensor/group_tiles.h"
#include "tensor/scalar.h"

namespace hadal {
namespace {

constexpr int64_t kPieceBytes = 1 << 20;  // what one worker makes at a time
constexpr int kPiecesPerWorker = 8;       // before they are written

// What a tensor of the file is made of.
struct SynthTensor {
  QuantFormat format = QuantFormat::kF32;
  GroupShape group = {};   // of grouped formats
  int rows = 0, cols = 0;  // cols 0: a vector
  double center = 0.0, deviation = 0.0;
  bool is_scales = false;  // of the FP8 matrix before it
};

// The deviation that keeps a product as large as its input, and what the residual stream gets small
// in sum. Embedding and stream are of the order of 1.
double DeviationOf(const ExpectedWeight& weight, const ModelConfig& config) {
  if (weight.shape.size() == 1) return weight.role == WeightRole::kCorrectionBias ? 0.01 : 0.1;
  const double plain = 1.0 / std::sqrt(static_cast<double>(weight.shape[1]));
  switch (weight.role) {
    case WeightRole::kEmbedding:
      return 1.0;
    case WeightRole::kOut:
    case WeightRole::kDown:
    case WeightRole::kExpertDown:
    case WeightRole::kSharedDown:
      return plain * 2.0 / std::sqrt(static_cast<double>(config.num_hidden_layers));
    default:
      return plain;
  }
}

bool IsGain(WeightRole role) {
  return role != WeightRole::kCorrectionBias && role != WeightRole::kIndexerKNormBias;
}

// F32 in every release.
bool IsFloat(WeightRole role) {
  return role == WeightRole::kCorrectionBias || role == WeightRole::kIndexerKNorm ||
         role == WeightRole::kIndexerKNormBias;
}

// The tensors in the order of the files.
class Plan {
 public:
  Plan(const SynthOptions& options, const ModelConfig& config)
      : options_(options), config_(config) {
    const auto add = [this](const ExpectedWeight& weight) {
      if (!weight.has_fallback) Add(weight);
    };
    ForEachWeight(config, add);
    if (config.num_nextn_predict_layers > 0) ForEachMtpWeight(config, add);
  }

  std::vector<SafetensorsSpec> specs;
  std::vector<SynthTensor> tensors;
  int64_t num_parameters = 0;

 private:
  void Add(const ExpectedWeight& weight) {
    num_parameters += weight.num_elements();
    SynthTensor tensor = {.format = QuantFormat::kBF16,
                          .rows = static_cast<int>(weight.shape[0]),
                          .deviation = DeviationOf(weight, config_)};
    SafetensorsSpec spec = {weight.name, DType::kBF16, weight.shape};
    if (weight.shape.size() == 1) {
      tensor.center = IsGain(weight.role) ? 1.0 : 0.0;
      if (IsFloat(weight.role)) {
        tensor.format = QuantFormat::kF32;
        spec.dtype = DType::kF32;
      }
      return Push(std::move(spec), tensor);
    }
    tensor.cols = static_cast<int>(weight.shape[1]);
    if (options_.format == QuantFormat::kF8Block128 && IsPublishedInFp8(weight.role)) {
      return PushFp8(std::move(spec), tensor);
    }
    if (options_.format == QuantFormat::kInt4Group && weight.role == WeightRole::kKvB) {
      return PushFp8(std::move(spec), tensor);  // as a quantised model has it
    }
    if (IsGrouped(options_.format)) {
      const std::optional<GroupShape> shape =
          DefaultFormat(weight.role, weight.shape[1],
                        {options_.format, options_.group_size, options_.has_zero_points});
      if (shape) return PushGrouped(*shape, std::move(spec), tensor);
    }
    Push(std::move(spec), tensor);
  }

  void Push(SafetensorsSpec spec, const SynthTensor& tensor) {
    specs.push_back(std::move(spec));
    tensors.push_back(tensor);
  }

  void PushFp8(SafetensorsSpec spec, SynthTensor tensor) {
    tensor.format = QuantFormat::kF8Block128;
    SafetensorsSpec scales = {ScaleName(spec.name), DType::kF32, ScaleShape(spec.shape)};
    SynthTensor scale_tensor = tensor;
    scale_tensor.is_scales = true;
    scale_tensor.rows = static_cast<int>(scales.shape[0]);
    scale_tensor.cols = static_cast<int>(scales.shape[1]);
    spec.dtype = DType::kF8E4M3;
    Push(std::move(spec), tensor);
    Push(std::move(scales), scale_tensor);
  }

  void PushGrouped(const GroupShape& shape, SafetensorsSpec spec, SynthTensor tensor) {
    tensor.format = shape.format;
    tensor.group = shape;
    spec.dtype = DType::kU8;
    spec.shape = {NumTiles(tensor.rows), TileBytes(shape, tensor.cols)};
    Push(std::move(spec), tensor);
  }

  const SynthOptions& options_;
  const ModelConfig& config_;
};

class Synthesizer {
 public:
  Synthesizer(const SynthOptions& options, const Plan& plan, ShardedWriter* writer,
              const ByteProgress& progress)
      : options_(options),
        plan_(plan),
        writer_(writer),
        progress_(progress),
        pool_(options.num_threads > 0 ? options.num_threads : NumUsableCores()) {}

  Status Run() {
    for (size_t i = 0; i < plan_.tensors.size(); ++i) {
      RETURN_IF_ERROR(plan_.tensors[i].is_scales || plan_.tensors[i].cols == 0 ? WriteFloats(i)
                                                                               : WriteMatrix(i));
    }
    return writer_->Finish();
  }

 private:
  const RandomElements& Elements(QuantFormat format, double deviation) {
    const double key = format == QuantFormat::kBF16 ? deviation : 0.0;
    const auto [found, is_new] = elements_.try_emplace({format, key});
    if (is_new) found->second = RandomElements::Create(format, deviation);
    return found->second;
  }

  // Vectors and scales: small enough for one piece.
  Status WriteFloats(size_t idx) {
    const SynthTensor& tensor = plan_.tensors[idx];
    const uint64_t stream = RandomStream(options_.seed, plan_.specs[idx].name);
    const size_t count =
        static_cast<size_t>(tensor.rows) * static_cast<size_t>(tensor.is_scales ? tensor.cols : 1);
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) {
      const double unit = static_cast<double>(Mix64(stream + i) >> 11) * 0x1.0p-53;
      const double around = 2.0 * unit - 1.0;
      values[i] = static_cast<float>(
          tensor.is_scales ? Fp8Scale(tensor) * (1.0 + 0.25 * around)
                           : tensor.center + tensor.deviation * std::sqrt(3.0) * around);
    }
    if (tensor.is_scales || tensor.format == QuantFormat::kF32) {
      return WriteBytes(idx, 0, std::as_bytes(std::span(values)));
    }
    std::vector<uint16_t> narrow(count);
    std::transform(values.begin(), values.end(), narrow.begin(), FloatToBf16);
    return WriteBytes(idx, 0, std::as_bytes(std::span(narrow)));
  }

  double Fp8Scale(const SynthTensor& tensor) {
    return tensor.deviation / Elements(QuantFormat::kF8Block128, 0.0).deviation();
  }

  Status WriteMatrix(size_t idx) {
    const SynthTensor& tensor = plan_.tensors[idx];
    const RandomElements& elements = Elements(tensor.format, tensor.deviation);
    const uint64_t stream = RandomStream(options_.seed, plan_.specs[idx].name);
    const bool is_grouped = IsGrouped(tensor.format);
    const int64_t unit =
        is_grouped ? TileBytes(tensor.group, tensor.cols) : int64_t{8};  // a piece holds whole ones
    const int64_t total = is_grouped
                              ? GroupedBytes(tensor.group, tensor.rows, tensor.cols)
                              : int64_t{tensor.rows} * tensor.cols * ElementBytes(tensor.format);
    const int64_t piece = std::max<int64_t>(1, kPieceBytes / unit) * unit;
    const int64_t batch = piece * kPiecesPerWorker * pool_.num_threads();
    buffer_.resize(static_cast<size_t>(std::min(total, batch)));
    for (int64_t first = 0; first < total; first += batch) {
      const int64_t size = std::min(batch, total - first);
      const auto make = [&](int share, int) {
        const int64_t begin = share * piece, end = std::min(size, begin + piece);
        const std::span<std::byte> bytes(buffer_.data() + begin, static_cast<size_t>(end - begin));
        if (is_grouped) {
          FillRandomTiles(elements, tensor.group, tensor.rows, tensor.cols,
                          tensor.deviation / elements.deviation(), stream, (first + begin) / unit,
                          bytes);
        } else {
          elements.Fill(stream, first + begin, bytes);
        }
      };
      pool_.ParallelFor(static_cast<int>(CeilDiv(size, piece)), make);
      RETURN_IF_ERROR(WriteBytes(idx, first, std::span(buffer_.data(), static_cast<size_t>(size))));
    }
    return Status::Ok();
  }

  Status WriteBytes(size_t idx, int64_t first_byte, std::span<const std::byte> bytes) {
    RETURN_IF_ERROR(writer_->Write(static_cast<int>(idx), first_byte, bytes));
    done_ += static_cast<int64_t>(bytes.size());
    return progress_ ? progress_(done_, writer_->total_bytes()) : Status::Ok();
  }

  const SynthOptions& options_;
  const Plan& plan_;
  ShardedWriter* writer_;
  const ByteProgress& progress_;
  ThreadPool pool_;
  std::map<std::pair<QuantFormat, double>, RandomElements> elements_;
  std::vector<std::byte> buffer_;
  int64_t done_ = 0;
};

// Specification, 1.3, or how our own formats say what they are.
Json QuantizationConfig(const SynthOptions& options) {
  if (options.format == QuantFormat::kF8Block128) {
    return {{"activation_scheme", "dynamic"},
            {"fmt", "e4m3"},
            {"quant_method", "fp8"},
            {"weight_block_size", Json::array({128, 128})}};
  }
  return {{"quant_method", "hadal"},
          {"version", 1},
          {"format", options.format == QuantFormat::kInt4Group ? "int4" : "int8"},
          {"group_size", options.group_size},
          {"zero_points", options.has_zero_points}};
}

}  // namespace

Result<Json> SynthConfig(const SynthOptions& options) {
  ASSIGN_OR_RETURN(Json config, ReadModelShape(options.shape));
  RETURN_IF_ERROR(ModelConfig::Parse(config, options.shape).status());
  if (options.num_layers > 0) {
    config["num_hidden_layers"] = options.num_layers;
    if (config.contains("first_k_dense_replace")) {
      ASSIGN_OR_RETURN(const int64_t dense,
                       ReadInt(config, "first_k_dense_replace", 0, INT32_MAX, options.shape));
      config["first_k_dense_replace"] = std::min<int64_t>(dense, options.num_layers - 1);
    }
  }
  if (options.num_experts > 0) config["n_routed_experts"] = options.num_experts;
  if (!options.has_mtp) config.erase("num_nextn_predict_layers");
  config.erase("quantization_config");
  config["torch_dtype"] = "bfloat16";
  if (options.format == QuantFormat::kF8Block128 || IsGrouped(options.format)) {
    config["quantization_config"] = QuantizationConfig(options);
  }
  RETURN_IF_ERROR(ModelConfig::Parse(config, options.shape).status());
  return config;
}

Result<int64_t> SynthWeightBytes(const SynthOptions& options) {
  ASSIGN_OR_RETURN(const Json config_json, SynthConfig(options));
  ASSIGN_OR_RETURN(const ModelConfig config, ModelConfig::Parse(config_json, options.shape));
  const Plan plan(options, config);
  ASSIGN_OR_RETURN(const ShardedWriter writer, ShardedWriter::Create("", plan.specs));
  return writer.total_bytes();
}

Result<SynthReport> WriteSynthModel(const SynthOptions& options, const std::string& folder,
                                    const ByteProgress& progress) {
  ASSIGN_OR_RETURN(const Json config_json, SynthConfig(options));
  ASSIGN_OR_RETURN(const ModelConfig config, ModelConfig::Parse(config_json, options.shape));
  const Plan plan(options, config);
  ASSIGN_OR_RETURN(ShardedWriter writer,
                   ShardedWriter::Create(folder, plan.specs, options.shard_bytes));
  RETURN_IF_ERROR(Synthesizer(options, plan, &writer, progress).Run());
  // Last, so that a folder that was left half written is no model.
  RETURN_IF_ERROR(WriteWholeFile(folder + "/config.json", config_json.dump(2) + "\n"));
  return SynthReport{.num_tensors = static_cast<int>(plan.tensors.size()),
                     .num_files = writer.num_shards(),
                     .num_bytes = writer.total_bytes(),
                     .num_parameters = plan.num_parameters};
}

}  // namespace hadal
