// hadal doctor: what this machine can do, whether its kernels compute rightly, and what to change.
#include <iostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/machine_report.h"
#include "apps/units.h"
#include "base/json.h"

namespace hadal {
namespace {

Json KernelsAsJson(const MachineReport& report) {
  Json list = Json::array();
  for (const KernelSetReport& set : report.kernels) {
    Json item = {{"name", set.name}, {"usable", set.is_usable}};
    item["self_test"] = set.is_usable ? Json(set.faulty_kernel.empty()) : Json(nullptr);
    item["faulty_kernel"] = set.faulty_kernel.empty() ? Json(nullptr) : Json(set.faulty_kernel);
    item["gop_s"] = set.ops_per_s / kGiga;
    list.push_back(std::move(item));
  }
  return list;
}

void PrintJson(const MachineReport& report) {
  const Json out = {
      {"cpu", report.cpu},
      {"cores", report.num_cores},
      {"features",
       {{"avx2_fma_f16c", report.features.avx2_fma_f16c}, {"avx512", report.features.avx512}}},
      {"kernels", KernelsAsJson(report)},
      {"memory_bytes", report.memory_bytes},
      {"available_memory_bytes", report.available_bytes},
      {"cache_bytes", report.cache_bytes},
      {"huge_pages", report.huge_pages},
      {"read_bandwidth_gb_s", report.read_bytes_per_s / kGiga},
      {"read_bandwidth_one_core_gb_s", report.read_bytes_per_s_single / kGiga},
      {"advice", AdviceFor(report)}};
  std::cout << DumpJson(out) << '\n';
}

std::string SetForPeople(const KernelSetReport& set) {
  if (!set.is_usable) return fmt::format("{}: this processor cannot run it", set.name);
  const std::string test =
      set.faulty_kernel.empty() ? "self-test passed" : "WRONG: " + set.faulty_kernel;
  return fmt::format("{}: {}, {:.3g} Gop/s", set.name, test, set.ops_per_s / kGiga);
}

void PrintTable(const MachineReport& report) {
  const auto row = [](std::string_view name, std::string_view value) {
    std::cout << fmt::format("{:<16}{}\n", name, value);
  };
  row("processor",
      fmt::format("{}, {} core{}", report.cpu, report.num_cores, report.num_cores == 1 ? "" : "s"));
  for (const KernelSetReport& set : report.kernels) row("kernels", SetForPeople(set));
  row("memory", fmt::format("{}, {} free", FormatBytes(report.memory_bytes),
                            FormatBytes(report.available_bytes)));
  row("last cache", report.cache_bytes == 0 ? "unknown" : FormatBytes(report.cache_bytes));
  row("huge pages", report.huge_pages);
  row("reading",
      report.read_bytes_per_s == 0
          ? "not measured: too little memory is free"
          : fmt::format("{:.1f} GB/s, one core {:.1f} GB/s", report.read_bytes_per_s / kGiga,
                        report.read_bytes_per_s_single / kGiga));
  const std::vector<std::string> advice = AdviceFor(report);
  if (advice.empty()) row("advice", "nothing to change");
  for (const std::string& sentence : advice) row("advice", sentence);
}

}  // namespace

void AddDoctorCommand(CLI::App* app, CommandBody* body) {
  CLI::App* command = app->add_subcommand(
      "doctor",
      "Tell what this machine can do: processor, kernel sets with a self-test of each against the\n"
      "reference, memory, and the two limits that decide speed. Reading memory bounds decoding: a\n"
      "token costs at least the bytes of its weights divided by the rate. Arithmetic bounds "
      "reading\n"
      "a prompt. Rates are the best of half a second; other programs lower them.");
  const auto wants_json = std::make_shared<bool>(false);
  command->add_flag("--json", *wants_json, "Print one JSON object");
  command->callback([=] {
    *body = [=]() -> Status {
      const MachineReport report = ExamineMachine();
      if (*wants_json) {
        PrintJson(report);
      } else {
        PrintTable(report);
      }
      return Status::Ok();
    };
  });
}

}  // namespace hadal
