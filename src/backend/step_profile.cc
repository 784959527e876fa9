#include "backend/step_profile.h"

#include <algorithm>

#include "base/json.h"

namespace hadal {
namespace {

constexpr size_t kMaxEvents = 1'000'000;

double Microseconds(StepProfile::Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

}  // namespace

void StepProfile::Add(std::string_view name, Clock::time_point start) {
  const Clock::time_point end = Clock::now();
  auto entry = std::ranges::find(entries_, name, &Entry::name);
  if (entry == entries_.end()) entry = entries_.insert(entry, {.name = std::string(name)});
  ++entry->calls;
  entry->seconds += std::chrono::duration<double>(end - start).count();
  if (events_.size() < kMaxEvents) {
    events_.push_back({static_cast<int>(entry - entries_.begin()), Microseconds(start - origin_),
                       Microseconds(end - start)});
  }
}

void StepProfile::Clear() {
  entries_.clear();
  events_.clear();
  origin_ = Clock::now();
}

std::vector<StepProfile::Entry> StepProfile::entries() const {
  std::vector<Entry> sorted = entries_;
  std::ranges::stable_sort(sorted, std::greater<>(), &Entry::seconds);
  return sorted;
}

double StepProfile::total_seconds() const {
  double total = 0;
  for (const Entry& entry : entries_) total += entry.seconds;
  return total;
}

Json StepProfile::AsTrace() const {
  Json events = Json::array();
  for (const Event& event : events_) {
    events.push_back({{"name", entries_[static_cast<size_t>(event.entry)].name},
                      {"ph", "X"},
                      {"ts", event.start_us},
                      {"dur", event.duration_us},
                      {"pid", 1},
                      {"tid", 1}});
  }
  return {{"traceEvents", events}, {"displayTimeUnit", "ms"}};
}

}  // namespace hadal
