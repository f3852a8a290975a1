#pragma once

namespace berth::gateway {

// From now on what gRPC logs in this program goes to standard error by a few lines a minute, the
// rest counted: a client can cause much of it, with each of his calls. Any thread.
void bound_grpc_log();

}  // namespace berth::gateway
