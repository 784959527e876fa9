#include "convert/convert_checkpoint.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/json.h"
#include "base/quote.h"
#include "convert/convert_plan.h"
#include "convert/small_files.h"
#include "formats/block_tiles.h"
#include "formats/checkpoint.h"
#include "formats/ggml_blocks.h"
#include "formats/resumable_writer.h"
#include "formats/sharded_writer.h"
#include "model/kv_b_halves.h"
#include "tensor/group_tiles.h"
#include "tensor/row_rounder.h"

namespace hadal {
namespace {

constexpr int kConvertVersion = 1;  // of what the same options give; part of the fingerprint
constexpr int64_t kChunkFloats = int64_t{1} << 22;

// Everything that the bytes of the result depend on.
std::string Fingerprint(const ConvertOptions& options, const Checkpoint& checkpoint) {
  std::string text =
      fmt::format("convert {} {} {} {}", kConvertVersion, DumpJson(checkpoint.config()),
                  options.may_requantize, options.shard_bytes);
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    const auto head = tensor.bytes.first(std::min<size_t>(tensor.bytes.size(), 64));
    text += fmt::format("|{} {} {} {:x}", tensor.name, DTypeName(tensor.dtype),
                        fmt::join(tensor.shape, ","), Checksum(head));
  }
  return fmt::format("{:016x}", Checksum(std::as_bytes(std::span(text))));
}

std::span<const std::byte> BytesOf(std::span<const float> floats) { return std::as_bytes(floats); }

class Converter {
 public:
  Converter(const ModelConfig& config, int num_threads, WeightUnpacker* unpacker,
            ResumableWriter* writer)
      : config_(config), unpacker_(unpacker), rounder_(num_threads), writer_(writer) {}

  Status Store(const ConvertItem& item) {
    if (writer_->is_done(item.spec_idx) &&
        (item.scales_spec_idx < 0 || writer_->is_done(item.scales_spec_idx))) {
      return Status::Ok();
    }
    switch (item.action) {
      case ConvertItem::Action::kCopy:
        return Copy(item);
      case ConvertItem::Action::kTiles:
        return StoreTiles(item);
      case ConvertItem::Action::kFloats:
        return StoreFloats(item);
      case ConvertItem::Action::kRound:
        return StoreRounded(item);
    }
    return Status::Ok();
  }

 private:
  Status Copy(const ConvertItem& item) {
    RETURN_IF_ERROR(writer_->Put(item.spec_idx, item.source.tensor->bytes));
    if (item.scales_spec_idx < 0) return Status::Ok();
    return writer_->Put(item.scales_spec_idx, item.source.scales->bytes);
  }

  Status StoreTiles(const ConvertItem& item) {
    if (item.source.packed != nullptr) {
      ASSIGN_OR_RETURN(const UnpackedMatrix unpacked,
                       unpacker_->Unpack(*item.source.packed, /*wants_floats=*/false));
      return writer_->Put(item.spec_idx,
                          {unpacked.memory.data(), static_cast<size_t>(unpacked.memory.bytes())});
    }
    const TensorInfo& tensor = *item.source.tensor;
    std::vector<std::byte> tiles(
        static_cast<size_t>(GroupedBytes(item.shape, item.rows, item.cols)));
    if (!BlocksToTiles(tensor.dtype, tensor.bytes, item.rows, item.cols, tiles)) {
      return Status::Unsupported(fmt::format(
          "tensor {}: expected codes from -127 on and finite scales, found another {} value",
          Quoted(item.name), DTypeName(tensor.dtype)));
    }
    return writer_->Put(item.spec_idx, tiles);
  }

  Status StoreFloats(const ConvertItem& item) {
    if (item.source.split_key != nullptr) {
      return writer_->Put(item.spec_idx, BytesOf(JoinKvBHalves(config_, *item.source.split_key,
                                                               *item.source.split_value)));
    }
    std::vector<float> values(static_cast<size_t>(item.rows) * static_cast<size_t>(item.cols));
    Decode(item, 0, item.rows, values);
    return writer_->Put(item.spec_idx, BytesOf(values));
  }

  // Rows [first, first + count) of a packed matrix or one of blocks.
  static void Decode(const ConvertItem& item, int first, int count, std::span<float> out) {
    const auto cols = static_cast<size_t>(item.cols);
    if (item.source.packed != nullptr) {
      for (int row = 0; row < count; ++row) {
        item.source.packed->DecodeRow(first + row,
                                      out.subspan(static_cast<size_t>(row) * cols, cols));
      }
      return;
    }
    const TensorInfo& tensor = *item.source.tensor;
    const size_t row_bytes = tensor.bytes.size() / static_cast<size_t>(item.rows);
    DecodeGgmlBlocks(FindGgmlType(tensor.dtype)->type,
                     tensor.bytes.subspan(static_cast<size_t>(first) * row_bytes,
                                          static_cast<size_t>(count) * row_bytes),
                     out);
  }

  Status StoreRounded(const ConvertItem& item) {
    std::vector<std::byte> tiles(
        static_cast<size_t>(GroupedBytes(item.shape, item.rows, item.cols)));
    const auto fitting = static_cast<int>(std::min<int64_t>(kChunkFloats / item.cols, 1 << 20));
    const int per_chunk = std::max(kTileRows, fitting / kTileRows * kTileRows);
    for (int first = 0; first < item.rows; first += per_chunk) {
      const int count = std::min(per_chunk, item.rows - first);
      chunk_.resize(static_cast<size_t>(count) * static_cast<size_t>(item.cols));
      Decode(item, first, count, chunk_);
      rounder_.Round(item.shape, item.cols, first, count, chunk_.data(), ScaleChoice::kSearch,
                     tiles);
    }
    return writer_->Put(item.spec_idx, tiles);
  }

  const ModelConfig& config_;
  WeightUnpacker* unpacker_;
  RowRounder rounder_;
  ResumableWriter* writer_;
  std::vector<float> chunk_;
};

Json ConvertedConfig(const Checkpoint& checkpoint, const ModelConfig& config) {
  Json json = checkpoint.config();
  const std::string_view method = PackedMethodName(config.packed_scheme.method);
  json["quantization_config"] = {{"quant_method", "hadal"},
                                 {"version", 1},
                                 {"converted_from", method.empty() ? "GGUF" : method}};
  return json;
}

Status CheckSource(const Checkpoint& checkpoint, const ModelConfig& config) {
  const bool is_packed =
      checkpoint.notes().container == "gguf" || config.packed_scheme.method != PackedMethod::kNone;
  if (is_packed) return Status::Ok();
  return Status::InvalidArgument(fmt::format(
      "{}: source: expected GGUF, compressed-tensors, GPTQ or AWQ, found {}", checkpoint.path(),
      config.has_grouped_weights ? "hadal's own formats"
                                 : "the published layout, which `hadal quantize` rounds"));
}

ConvertReport ReportOf(const ConvertPlan& plan, const Checkpoint& checkpoint,
                       const ResumableWriter& writer) {
  ConvertReport report;
  for (const ConvertItem& item : plan.items) {
    ++(item.is_exact() ? report.exact : report.rounded)[item.what];
  }
  report.dropped = plan.dropped;
  report.num_tensors = static_cast<int>(plan.specs.size());
  report.num_files = writer.num_shards();
  report.num_resumed = writer.num_done();
  report.num_bytes = writer.total_bytes();
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    report.source_bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  return report;
}

}  // namespace

Result<ConvertReport> ConvertCheckpoint(const ConvertOptions& options,
                                        const ConvertProgress& progress) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, Checkpoint::Open(options.source));
  ASSIGN_OR_RETURN(const ModelConfig config,
                   ModelConfig::Parse(checkpoint->config(), checkpoint->config_path()));
  RETURN_IF_ERROR(CheckSource(*checkpoint, config));
  WeightUnpacker unpacker(options.num_threads);
  ASSIGN_OR_RETURN(const ConvertPlan plan,
                   PlanConversion(*checkpoint, config, options.may_requantize, &unpacker));
  ASSIGN_OR_RETURN(ResumableWriter writer,
                   ResumableWriter::Open(options.folder, plan.specs,
                                         Fingerprint(options, *checkpoint), options.shard_bytes));
  ConvertReport report = ReportOf(plan, *checkpoint, writer);
  Converter converter(config, options.num_threads, &unpacker, &writer);
  int64_t done = 0;
  for (const ConvertItem& item : plan.items) {
    const Status status = converter.Store(item);
    if (!status.ok()) return status.Annotate(options.source);
    ++done;
    if (progress) RETURN_IF_ERROR(progress(done, static_cast<int64_t>(plan.items.size())));
  }
  // Before the weights get their names, so that a folder is never without a part of them.
  if (checkpoint->notes().container != "gguf") {
    RETURN_IF_ERROR(CopySmallFiles(checkpoint->folder(), options.folder));
  }
  RETURN_IF_ERROR(WriteWholeFile(options.folder + "/config.json",
                                 ConvertedConfig(*checkpoint, config).dump(2) + "\n"));
  RETURN_IF_ERROR(writer.Finish());
  return report;
}

}  // namespace hadal
