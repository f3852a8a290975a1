#pragma once

#include <string_view>

#include "berth/v1/admin.pb.h"
#include "supervisor/core/ledger/failure_record.h"
#include "supervisor/rpc/error_detail.h"
#include "supervisor/store/store.h"

namespace berth::admin {

// Who asks, by gRPC's name of the peer ("unix:", "ipv4:127.0.0.1:4711"). The modes of the Unix
// socket and of its directory let only root, berth's own user and the group berth-admin through, so
// that whoever comes that way is an admin; anybody else is a client.
rpc::Audience audience_of(std::string_view peer);

// Command line, environment, log lines and paths only for admins.
v1::FailureRecord to_proto(const core::FailureRecord& record, rpc::Audience audience);
v1::PastLoad to_proto(const store::LoadRecord& load);

}  // namespace berth::admin
