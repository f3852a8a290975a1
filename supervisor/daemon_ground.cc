#include "supervisor/daemon_ground.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "supervisor/fronts.h"
#include "supervisor/process/directories.h"
#include "supervisor/process/instance_mark.h"
#include "supervisor/process/proc.h"
#include "supervisor/process/unix_socket.h"
#include "supervisor/programs.h"
#include "supervisor/worker_command.h"

namespace berth {
namespace {

constexpr mode_t kPrivate = 0700;
constexpr mode_t kPassable = 0755;

// What no directory could make good.
Status check(const catalog::ServerConfig& server) {
  if (unix_sockets(server).empty()) {
    return fail(Reason::kInvalidArgument,
                "server.grpc names no Unix socket. Add one, like \"unix:/run/berth/berth.sock\".");
  }
  if (server.run_dir.size() + worker_socket_suffix_bytes() > process::kLongestSocketPath) {
    return fail(Reason::kInvalidArgument,
                "server.run_dir has " + std::to_string(server.run_dir.size()) +
                    " bytes, but at most " +
                    std::to_string(process::kLongestSocketPath - worker_socket_suffix_bytes()) +
                    " leave room for the sockets of workers. Choose a shorter path.");
  }
  return {};
}

Status make_directories(const catalog::ServerConfig& server, bool is_demo) {
  // Clients of every user come through to the socket; a demo is its user's own.
  const mode_t run_mode = is_demo ? kPrivate : kPassable;
  if (Status made = process::ensure_private_directory(server.run_dir, run_mode); !made) {
    return made;
  }
  if (Status made = process::ensure_private_directory(worker_directory(server.run_dir), kPrivate);
      !made) {
    return made;
  }
  for (const std::string& socket : unix_sockets(server)) {
    if (Status usable = process::prepare_socket_path(socket); !usable) return usable;
  }
  return {};
}

}  // namespace

Result<DaemonGround> prepare_ground(const catalog::ServerConfig& server, bool is_demo) {
  if (const Status checked = check(server); !checked) return fail(checked.error());
  Result<process::StateLock> lock = process::StateLock::acquire(server.state_dir);
  if (!lock) return fail(lock.error());
  if (const Status made = make_directories(server, is_demo); !made) return fail(made.error());
  Result<std::string> boot_id = process::boot_id();
  if (!boot_id) return fail(boot_id.error());
  Result<std::string> owner = process::mark_owner(server.state_dir);
  if (!owner) return fail(owner.error());
  std::string worker = worker_program();
  if (worker.empty()) {
    return fail(Reason::kInternal,
                "berth-worker is neither beside berthd nor in ../libexec/berth. Install it there.");
  }
  return DaemonGround{*std::move(lock), *std::move(boot_id), *std::move(owner), std::move(worker)};
}

void remove_dead_sockets(const std::string& directory) {
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(directory, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (entry->path().extension() != ".sock") continue;
    const Status removed = process::prepare_socket_path(entry->path().string());
    static_cast<void>(removed);  // in use by a worker that cannot be killed
  }
}

}  // namespace berth
