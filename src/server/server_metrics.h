// What /metrics says: counts of the server's own, and the engine's. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/metrics.h"
#include "server/http_message.h"

namespace hadal {

class ServerMetrics {
 public:
  ServerMetrics();
  ~ServerMetrics();

  // After a request: `route` is one of a few names, never what a client wrote.
  void CountRequest(std::string_view route, const ExchangeEnd& end);

  // The body of /metrics, in Prometheus' text format. `engine` is null while the model loads.
  std::string Text(const MetricsSnapshot* engine, int num_connections, bool is_draining) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hadal
