#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "berth/v1/admin.pb.h"
#include "common/clock.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/core/caller.h"

namespace berth::admin {

// Everything that the server does now, cut to what the caller may see. Copies on the core strand,
// and does the rest on the pool. Any thread; `done` on the pool. Wakes nothing.
void get_state(ServerState& state, core::Caller caller, std::function<void(v1::State)> done);
// The same as of at most kSharedFor ago: one copy for all of a tenant, or all admins, who watch.
inline constexpr Duration kSharedFor = std::chrono::milliseconds(100);
void get_shared_state(ServerState& state, core::Caller caller, std::function<void(v1::State)> done);
// What `server` of it is. The same threads.
void get_server_info(ServerState& state, core::Caller caller,
                     std::function<void(v1::ServerInfo)> done);
// `instance` of each model. The same threads.
void list_instances(ServerState& state, core::Caller caller,
                    std::function<void(v1::ListInstancesResponse)> done);

}  // namespace berth::admin
