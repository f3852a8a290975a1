#pragma once

#include "berth/v1/admin.pb.h"
#include "supervisor/core/caller.h"
#include "supervisor/core/ledger/failure_record.h"
#include "supervisor/rpc/error_detail.h"
#include "supervisor/store/store.h"

namespace berth::admin {

// What that caller may see of failures.
rpc::Audience audience_of(const core::Caller& caller);

// Command line, environment, log lines and paths only for admins.
v1::FailureRecord to_proto(const core::FailureRecord& record, rpc::Audience audience);
// Id, class, reason, exit and since when: what stands beside a model.
v1::Failure to_brief(const core::FailureRecord& record);
v1::PastLoad to_proto(const store::LoadRecord& load);

}  // namespace berth::admin
