#pragma once

#include "berth/v1/admin.pb.h"
#include "supervisor/core/ledger/failure_record.h"
#include "supervisor/rpc/error_detail.h"
#include "supervisor/store/store.h"

namespace berth::admin {

// Command line, environment, log lines and paths only for admins.
v1::FailureRecord to_proto(const core::FailureRecord& record, rpc::Audience audience);
v1::PastLoad to_proto(const store::LoadRecord& load);

}  // namespace berth::admin
