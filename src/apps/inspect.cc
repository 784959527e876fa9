// hadal inspect: what a checkpoint is, before anything is computed with it.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/inspect_gguf.h"
#include "apps/inspect_report.h"
#include "apps/json_lines.h"
#include "apps/model_path.h"
#include "apps/units.h"
#include "base/json.h"
#include "base/quote.h"
#include "formats/checksum_file.h"

namespace hadal {
namespace {

struct InspectFlags {
  std::string path;
  bool wants_tensors = false;
  bool wants_json = false;
  bool wants_check = false;
};

std::string FileName(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  const std::string& path = checkpoint.files()[static_cast<size_t>(tensor.file_idx)];
  return std::filesystem::path(path).filename().string();
}

int64_t TotalElements(const Checkpoint& checkpoint) {
  int64_t total = 0;
  for (const TensorInfo& tensor : checkpoint.tensors()) total += tensor.num_elements();
  return total;
}

Json TensorList(const Checkpoint& checkpoint) {
  Json list = Json::array();
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    list.push_back({{"name", tensor.name},
                    {"dtype", DTypeName(tensor.dtype)},
                    {"shape", tensor.shape},
                    {"bytes", tensor.bytes.size()},
                    {"file", FileName(checkpoint, tensor)}});
  }
  return list;
}

Json ByteTable(const std::vector<std::pair<std::string, int64_t>>& rows) {
  Json table = Json::object();
  for (const auto& [name, bytes] : rows) table[name] = bytes;
  return table;
}

void AddModel(const ModelReport& model, Json* out) {
  (*out)["model_type"] = model.config.model_type;
  (*out)["parameters_total"] = model.parameters.total;
  (*out)["parameters_active"] = model.parameters.active;
  (*out)["parameters_active_without_embedding"] = model.parameters.active_without_embedding();
  (*out)["parameters_mtp"] = model.has_mtp ? model.parameters.mtp : 0;
  (*out)["has_mtp"] = model.has_mtp;
  (*out)["num_hidden_layers"] = model.config.num_hidden_layers;
  (*out)["max_position_embeddings"] = model.config.max_position_embeddings;
  (*out)["cache_bytes_per_token"] = model.cache_bytes_per_token;
}

void AddNotes(const InspectReport& report, Json* out) {
  const CheckpointNotes& notes = report.checkpoint->notes();
  (*out)["container"] = notes.container;
  if (!notes.form.empty()) (*out)["mla_form"] = notes.form;
  if (report.model) {
    const std::string_view method = PackedMethodName(report.model->config.packed_scheme.method);
    if (!method.empty()) (*out)["packing"] = method;
    (*out)["bits_per_weight"] = report.bits_per_weight();
    Json table = Json::object();
    for (const auto& [part, types] : report.weights.types_by_part) table[part] = ByteTable(types);
    (*out)["types_by_part"] = std::move(table);
  }
  (*out)["supplied"] = notes.supplied;
  (*out)["warnings"] = report.warnings;
}

void PrintJson(const InspectReport& report, bool wants_tensors) {
  const Checkpoint& checkpoint = *report.checkpoint;
  Json out = Json::object();
  if (report.model) {
    AddModel(*report.model, &out);
  } else {
    out["model_type"] = nullptr;
    out["parameters_total"] = TotalElements(checkpoint);
  }
  out["chat_layout"] = nullptr;
  if (report.chat) {
    out["chat_layout"] = ChatLayoutName(report.chat->layout);
    out["chat_layout_reason"] = report.chat->reason;
  }
  AddNotes(report, &out);
  out["num_tensors"] = checkpoint.tensors().size();
  out["num_files"] = checkpoint.files().size();
  out["weight_bytes"] = report.weights.num_bytes;
  out["bytes_by_dtype"] = ByteTable(report.weights.bytes_by_dtype);
  if (report.model) out["bytes_by_part"] = ByteTable(report.weights.bytes_by_part);
  out["unused_tensors"] = report.weights.num_unused;
  out["memory"] = {{"total_bytes", report.memory.total_bytes},
                   {"available_bytes", report.memory.available_bytes},
                   {"fits", report.memory.fits}};
  if (report.model) out["memory"]["cache_tokens"] = report.memory.cache_tokens;
  if (wants_tensors || !report.model) out["tensors"] = TensorList(checkpoint);
  PrintJsonLine(out);
}

void PrintRow(std::string_view label, std::string_view text) {
  std::cout << fmt::format("{:<12} {}\n", label, text);
}

std::string ByteList(const std::vector<std::pair<std::string, int64_t>>& rows) {
  std::string text;
  for (const auto& [name, bytes] : rows) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, FormatBytes(bytes));
  }
  return text;
}

std::string LayersText(const ModelReport& model) {
  const ModelConfig& config = model.config;
  int num_moe = 0;
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) {
    num_moe += config.is_moe_layer(layer) ? 1 : 0;
  }
  std::string text =
      fmt::format("{}: {} dense", config.num_hidden_layers, config.num_hidden_layers - num_moe);
  if (num_moe > 0) {
    text +=
        fmt::format(", {} with {} experts ({} per token) and {} shared", num_moe,
                    config.n_routed_experts, config.num_experts_per_tok, config.n_shared_experts);
  }
  return text + (model.has_mtp ? "; one to predict a token more (MTP)" : "");
}

std::string AttentionText(const ModelConfig& config) {
  std::string text = fmt::format("{} heads over a latent of {} + {}", config.num_attention_heads,
                                 config.kv_lora_rank, config.qk_rope_head_dim);
  if (config.q_lora_rank > 0) text += fmt::format(", queries through {}", config.q_lora_rank);
  if (config.has_indexer())
    text += fmt::format(", which choose at most {} tokens", config.index_topk);
  return text;
}

std::string ContextText(const ModelConfig& config) {
  std::string text = fmt::format("{} tokens", config.max_position_embeddings);
  if (config.rope_scaling.is_yarn) {
    text += fmt::format(" (YaRN: {} times {})", config.rope_scaling.factor,
                        config.rope_scaling.original_max_position_embeddings);
  }
  return text;
}

std::string ParametersText(const ModelReport& model) {
  const ParameterCount& count = model.parameters;
  std::string text = fmt::format("{} in all, {} active per token ({} without the embedding)",
                                 FormatCount(count.total), FormatCount(count.active),
                                 FormatCount(count.active_without_embedding()));
  if (model.has_mtp) text += fmt::format("; MTP {} more", FormatCount(count.mtp));
  return text;
}

std::string MemoryText(const InspectReport& report) {
  const MemoryReport& memory = report.memory;
  if (memory.total_bytes == 0) return "unknown";
  std::string text = fmt::format("{} of {} free: ", FormatBytes(memory.available_bytes),
                                 FormatBytes(memory.total_bytes));
  if (!memory.fits) return text + "the weights do not fit and would be read again and again";
  text += "the weights fit";
  if (!report.model) return text;
  return text + fmt::format(", with room for {} tokens of cache", FormatCount(memory.cache_tokens));
}

std::string ChatText(const InspectReport& report) {
  if (!report.chat) return "no tokenizer, so token ids only";
  return fmt::format("layout {}: {}", ChatLayoutName(report.chat->layout), report.chat->reason);
}

void PrintModel(const ModelReport& model) {
  PrintRow("layers", LayersText(model));
  PrintRow("attention", AttentionText(model.config));
  PrintRow("context", ContextText(model.config));
  PrintRow("parameters", ParametersText(model));
  PrintRow("cache", fmt::format("{} per token", FormatBytes(model.cache_bytes_per_token)));
}

void PrintTensors(const Checkpoint& checkpoint) {
  size_t widest = 0;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    widest = std::max(widest, std::min<size_t>(tensor.name.size() + 2, 72));
  }
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    std::cout << fmt::format("{:<{}}  {:<8}  {:<16}  {:>9}  {}\n", Quoted(tensor.name), widest,
                             DTypeName(tensor.dtype), ShapeText(tensor.shape),
                             FormatBytes(static_cast<int64_t>(tensor.bytes.size())),
                             FileName(checkpoint, tensor));
  }
}

void PrintNotes(const InspectReport& report) {
  const CheckpointNotes& notes = report.checkpoint->notes();
  const std::string_view method =
      report.model ? PackedMethodName(report.model->config.packed_scheme.method) : "";
  if (notes.container != "safetensors" || !method.empty()) {
    PrintRow("container", fmt::format("{}{}{}{}", notes.container, method.empty() ? "" : ", ",
                                      method, notes.form.empty() ? "" : ", MLA as " + notes.form));
    for (const auto& [part, types] : report.weights.types_by_part) {
      PrintRow(part, ByteList(types));
    }
  }
  for (const std::string& note : notes.supplied) PrintRow("supplied", note);
  for (const std::string& warning : report.warnings) PrintRow("warning", warning);
}

void PrintTable(const InspectReport& report, bool wants_tensors) {
  const Checkpoint& checkpoint = *report.checkpoint;
  PrintRow("model", fmt::format("{} in {}",
                                report.model ? report.model->config.model_type
                                             : "tensors without a config.json",
                                checkpoint.path()));
  if (report.model) {
    PrintModel(*report.model);
    PrintRow("chat", ChatText(report));
  }
  PrintRow("weights",
           fmt::format("{} in {} tensors of {} {}", FormatBytes(report.weights.num_bytes),
                       checkpoint.tensors().size(), checkpoint.files().size(),
                       checkpoint.files().size() == 1 ? "file" : "files"));
  PrintRow("by type", ByteList(report.weights.bytes_by_dtype));
  if (report.model) {
    PrintRow("by part", ByteList(report.weights.bytes_by_part));
    PrintRow("bits", fmt::format("{:.2f} per weight", report.bits_per_weight()));
  }
  PrintNotes(report);
  if (report.weights.num_unused > 0) {
    PrintRow("unused", fmt::format("{} tensors, the first {}", report.weights.num_unused,
                                   Quoted(report.weights.first_unused)));
  }
  PrintRow("memory", MemoryText(report));
  if (wants_tensors || !report.model) PrintTensors(checkpoint);
}

Status RunInspect(const InspectFlags& flags) {
  const std::string path = flags.path.empty() ? BundledModelPath() : LocateModel(flags.path);
  if (IsMereGguf(path)) {
    RETURN_IF_ERROR(InspectGguf(path, flags.wants_json));
  } else {
    ASSIGN_OR_RETURN(const InspectReport report, InspectCheckpoint(path));
    if (flags.wants_check) {
      RETURN_IF_ERROR(VerifyChecksums(*report.checkpoint));
      RETURN_IF_ERROR(CheckWeightsAreFinite(*report.checkpoint));
    }
    if (flags.wants_json) {
      PrintJson(report, flags.wants_tensors);
    } else {
      PrintTable(report, flags.wants_tensors);
    }
  }
  std::cout.flush();
  if (!std::cout) return Status::Io("standard output: expected to write a report, found it closed");
  return Status::Ok();
}

}  // namespace

void AddInspectCommand(CLI::App* app, CommandBody* body) {
  CLI::App* command = app->add_subcommand(
      "inspect",
      "What a checkpoint is: kind of model, parameters, bytes by part and by type, bytes of cache\n"
      "per token, and whether it fits into this machine's memory. PATH is a model folder, one\n"
      "safetensors or GGUF file, or a folder with an index and shards but no config.json; of what\n"
      "is no whole model only the tensors are listed. Every name and shape is checked.");
  const auto flags = std::make_shared<InspectFlags>();
  command->add_option("PATH", flags->path, "Model folder or file (default: the bundled model)");
  command->add_flag("--tensors", flags->wants_tensors, "List every tensor");
  command->add_flag("--check", flags->wants_check,
                    "Read every weight and fail when one is not a finite number, or not what\n"
                    "its checksum says where the folder has checksums");
  command->add_flag("--json", flags->wants_json, "One JSON object");
  command->callback([flags, body] { *body = [flags] { return RunInspect(*flags); }; });
}

}  // namespace hadal
