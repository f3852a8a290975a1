#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/rpc/command_peer.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::rpc {

// What the requests to one program share. Core strand only, but for `clock`.
struct CommandSession {
  using RunBlocking = std::function<void(std::function<void()>)>;

  CommandSession(Clock& time, std::unique_ptr<CommandPeer> program, RunBlocking pool)
      : clock(time), peer(std::move(program)), run_blocking(std::move(pool)) {}
  Clock& clock;
  const std::unique_ptr<CommandPeer> peer;
  // Runs on the pool what would keep the core strand for long; empty: on the strand.
  const RunBlocking run_blocking;
  std::string model;  // what the program calls it; known when it is ready
};

// An answer that is read only when it is complete is read on the pool where it is so large.
inline constexpr std::size_t kLargeAnswer = 256U << 10U;

// What one request makes of its answer. Core strand only, but for its last call; calls never
// overlap.
class CommandReader {
 public:
  CommandReader() = default;
  CommandReader(const CommandReader&) = delete;
  CommandReader& operator=(const CommandReader&) = delete;
  virtual ~CommandReader() = default;

  // What is asked. `model`: what the program calls its model, as JSON.
  virtual CommandPost request(const std::string& model) = 0;
  // An error ends the request, and on_end() gets it.
  virtual Status on_head(CommandHead head) = 0;
  // An error as above; false: no room for more, until resume() says that there is.
  virtual Result<bool> on_piece(std::string piece) = 0;
  // The one who reads has room again. As on_piece().
  virtual Result<bool> resume() { return true; }
  // Whether the answer is complete before its connection ends.
  [[nodiscard]] virtual bool complete() const { return false; }
  // Whether on_end() has so much to do that it belongs on the pool.
  [[nodiscard]] virtual bool ends_slowly() const { return false; }
  // Last call; on the pool where it is slow.
  virtual void on_end(Status status) = 0;
};

// Runs one request to a program. The call may be used on any thread; the reader lives until its
// on_end(), which comes once, whatever happens: also at `deadline` (kDeadline), and after a
// cancel(). Either closes the connection at once, and the program sees that (T31).
std::unique_ptr<WorkerCall> start_command_call(std::shared_ptr<CommandSession> session,
                                               SteadyTime deadline,
                                               std::unique_ptr<CommandReader> reader);

}  // namespace berth::rpc
