#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "common/clock.h"
#include "supervisor/core/caller.h"
#include "supervisor/gateway/http/exchange.h"

namespace berth::gateway::openai {

// No request waits or runs longer, as over gRPC. Clients have deadlines of their own and hang up.
inline constexpr Duration kLongestRequest = std::chrono::hours(24);

// Who asks, and where the answer goes.
struct Exchange {
  std::string id;  // of the request
  core::Caller caller;
  std::shared_ptr<Reply> reply;
};

}  // namespace berth::gateway::openai
