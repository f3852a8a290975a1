#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "common/clock.h"
#include "supervisor/core/caller.h"
#include "supervisor/gateway/http/exchange.h"

namespace berth::gateway::openai {

// No request waits or runs longer, as over gRPC. Clients have deadlines of their own and hang up.
inline constexpr Duration kLongestRequest = std::chrono::hours(24);

// An answer that is sent at once may have so many bytes; longer ones have to be asked for as
// streams, of which only a little is kept.
inline constexpr std::size_t kMaxWholeAnswer = std::size_t{64} << 20U;

// Who asks, and where the answer goes.
struct Exchange {
  std::string id;  // of the request
  core::Caller caller;
  std::shared_ptr<Reply> reply;
};

}  // namespace berth::gateway::openai
