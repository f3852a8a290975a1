#pragma once

#include "berth/v1/error.pb.h"
#include "supervisor/core/caller.h"
#include "supervisor/core/ledger/failure_record.h"

namespace berth::rpc {

// What stands against a model, as it is shown beside it: id and since when, and for those who may
// know why loads fail class, reason and exit.
v1::Failure to_brief(const core::FailureRecord& record, const core::Caller& caller);

}  // namespace berth::rpc
