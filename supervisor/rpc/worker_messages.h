#pragma once

#include <optional>

#include "berth/v1/worker.pb.h"
#include "supervisor/core/generation.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::rpc {

// Between the supervisor's plain types and the worker's messages.

v1::GenerateRequest to_proto(const core::GenerateRequest& request);

// Nothing for events that say nothing to the supervisor (accepted, error: the status says it).
std::optional<core::GenerateEvent> from_proto(v1::GenerateEvent& event);

WorkerProgress from_proto(const v1::Progress& progress);
WorkerReady from_proto(const v1::Ready& ready);

}  // namespace berth::rpc
