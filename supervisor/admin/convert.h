#pragma once

#include "berth/v1/admin.pb.h"
#include "common/event.h"
#include "supervisor/core/caller.h"
#include "supervisor/residency/residency.h"
#include "supervisor/store/store.h"

namespace berth::admin {

// Without its socket and command line where the caller is no admin.
v1::Instance to_proto(const residency::InstanceSnapshot& instance, const core::Caller& caller);
v1::Event to_proto(const Event& event);
v1::Event to_proto(const store::StoredEvent& event);

}  // namespace berth::admin
