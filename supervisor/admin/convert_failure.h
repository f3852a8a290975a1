#pragma once

#include "berth/v1/admin.pb.h"
#include "supervisor/core/caller.h"
#include "supervisor/core/ledger/failure_record.h"
#include "supervisor/store/store.h"

namespace berth::admin {

// Command line, environment, log lines and paths only for admins; class, exit, memory and what
// would lift it only for those who may know why loads fail.
v1::FailureRecord to_proto(const core::FailureRecord& record, const core::Caller& caller);
v1::PastLoad to_proto(const store::LoadRecord& load, const core::Caller& caller);

}  // namespace berth::admin
