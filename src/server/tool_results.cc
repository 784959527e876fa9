#include "server/tool_results.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/quote.h"

namespace hadal {
namespace {

// Of the results [first, last), which follow the message with `calls`.
Status OrderResults(std::string_view id_field, const std::vector<ToolCall>& calls, size_t first,
                    size_t last, std::vector<ChatMessage>* messages) {
  std::vector<std::pair<size_t, size_t>> order;  // rank of the call, index of the message
  for (size_t i = first; i < last; ++i) {
    const std::string& id = (*messages)[i].tool_call_id;
    const auto call = std::ranges::find(calls, id, &ToolCall::id);
    if (!id.empty() && call == calls.end()) {
      return Status::InvalidArgument(
          fmt::format("{}: expected the id of a call of the message before the result, found {}",
                      id_field, Quoted(id, 64)));
    }
    order.emplace_back(id.empty() ? i - first : static_cast<size_t>(call - calls.begin()), i);
  }
  std::ranges::stable_sort(order, {}, &std::pair<size_t, size_t>::first);
  std::vector<ChatMessage> sorted;
  sorted.reserve(order.size());
  for (const auto& [rank, idx] : order) sorted.push_back(std::move((*messages)[idx]));
  std::ranges::move(sorted, messages->begin() + static_cast<std::ptrdiff_t>(first));
  return Status::Ok();
}

}  // namespace

Status OrderToolResults(std::string_view id_field, std::vector<ChatMessage>* messages) {
  for (size_t i = 0; i < messages->size(); ++i) {
    if ((*messages)[i].role != "tool") continue;
    if (i == 0 || (*messages)[i - 1].tool_calls.empty()) {
      return Status::InvalidArgument(fmt::format(
          "{}: expected a message with calls before the result of a tool, found none", id_field));
    }
    size_t end = i;
    while (end < messages->size() && (*messages)[end].role == "tool") ++end;
    RETURN_IF_ERROR(OrderResults(id_field, (*messages)[i - 1].tool_calls, i, end, messages));
    i = end;
  }
  return Status::Ok();
}

}  // namespace hadal
