#pragma once

namespace berth::rpc {

// Keeps the threads on which gRPC runs callbacks for the life of the program. gRPC 1.51 ends them
// when the last channel or server that uses them goes, and aborts ("assertion failed: prior > 0" in
// grpc_cq_internal_unref) when that happens while one of them is still at work; a channel goes
// wherever its last call ends. Call it before the first channel is made. Any thread.
void keep_callback_threads();

}  // namespace berth::rpc
