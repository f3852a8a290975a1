#pragma once

#include "berth/v1/admin.pb.h"
#include "common/event.h"
#include "supervisor/residency/residency.h"
#include "supervisor/rpc/error_detail.h"
#include "supervisor/store/store.h"

namespace berth::admin {

// Its socket and its command line only for admins.
v1::Instance to_proto(const residency::InstanceSnapshot& instance, rpc::Audience audience);
v1::Event to_proto(const Event& event);
v1::Event to_proto(const store::StoredEvent& event);

}  // namespace berth::admin
