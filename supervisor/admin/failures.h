#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "berth/v1/admin.pb.h"
#include "common/result.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/core/caller.h"

namespace berth::admin {

struct FailureAsk {
  std::string model;        // empty: all
  bool history = false;     // also those that do not stand any more
  std::uint32_t limit = 0;  // 0: 100; at most 1,000
  core::Caller caller;
};

// What is kept of loads that failed. What stands comes from the ledger itself, which knows it also
// while the store keeps nothing; the rest from the store. Any thread; `done` on the core strand.
// Errors: kUnknownModel, kStoreUnavailable.
void list_failures(ServerState& state, FailureAsk ask,
                   std::function<void(Result<v1::ListFailuresResponse>)> done);

// All that is known of why a model is, or is not, served. The same threads and errors.
void explain_model(ServerState& state, std::string model, core::Caller caller,
                   std::function<void(Result<v1::ModelReport>)> done);

}  // namespace berth::admin
