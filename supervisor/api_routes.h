#pragma once

#include <vector>

#include "supervisor/admin/metrics.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/gateway/http/exchange.h"

namespace berth {

// Our own routes over HTTP: /api/… and /metrics. They answer what the gRPC methods and the command
// line do, from the same functions. Both references outlive the server that serves them.
std::vector<gateway::Route> api_routes(admin::ServerState& state, admin::Metrics& metrics);

}  // namespace berth
