#include "supervisor/cli/doctor/daemon.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "common/keys/key_file.h"
#include "common/text.h"
#include "common/units.h"
#include "common/version.h"
#include "supervisor/catalog/config.h"
#include "supervisor/cli/format/text.h"

namespace berth::cli {
namespace {

constexpr std::uint64_t kLateLoopUs = 250'000;

void check_keys(DaemonState& state, const std::string& file) {
  if (file.empty()) return;
  const Result<keys::KeyFile> read = keys::read_key_file(file);
  if (!read && read.error().reason == Reason::kPermissionDenied && ::geteuid() != 0) {
    state.checks.push_back(ok("keys", file + " is not for this user to read"));
  } else if (!read) {
    state.checks.push_back(error("keys", read.error().message,
                                 read.error().reason == Reason::kNotFound
                                     ? "'berth keys add NAME' makes it"
                                     : "until then the keys of before count"));
  } else if (!read->warning.empty()) {
    state.checks.push_back(warning("keys", read->warning, {}));
  } else {
    state.checks.push_back(ok("keys", counted(read->list.keys().size(), "key") + " in " + file));
  }
}

// Who besides this machine's users reaches the server.
void check_listeners(DaemonState& state, const catalog::Config& config) {
  std::vector<std::string> open = catalog::open_addresses(config.server);
  if (open.empty()) {
    state.checks.push_back(ok("listeners", "only this machine reaches the server"));
    return;
  }
  const std::string found = "other machines reach " + join_names(open);
  if (config.auth.anonymous) {
    state.checks.push_back(warning("listeners", found + ", and need no key",
                                   "is that meant? auth.anonymous = false asks for keys"));
  } else if (config.server.tls_cert.empty()) {
    state.checks.push_back(warning("listeners", found + " without TLS",
                                   "keys and texts can be read on the way: set server.tls_cert "
                                   "and server.tls_key"));
  } else {
    state.checks.push_back(ok("listeners", found + ", with a key and TLS"));
  }
}

void check_config(DaemonState& state, const Environment& environment) {
  const std::string file =
      environment.non_empty("BERTH_CONFIG").value_or(catalog::default_config_path());
  if (::access(file.c_str(), F_OK) != 0) {
    state.checks.push_back(ok("config", "there is no " + file));
    return;
  }
  const catalog::ConfigResult read = catalog::load_config(file);
  if (!read.config) {
    const std::string first =
        read.problems.empty() ? std::string() : ": " + read.problems.front().to_string();
    state.checks.push_back(error("config",
                                 file + " has " + counted(read.problems.size(), "problem") + first,
                                 "run 'berth config check " + file + "'"));
    return;
  }
  state.checks.push_back(ok("config", file + " is valid"));
  const catalog::ServerConfig& server = read.config->server;
  state.directories = {
      {"state_dir", server.state_dir}, {"log_dir", server.log_dir}, {"run_dir", server.run_dir}};
  state.budgets = read.config->memory.budgets;
  check_keys(state, read.config->auth.keys_file);
  check_listeners(state, *read.config);
}

void check_info(DaemonState& state, const v1::ServerInfo& info, const std::string& where) {
  std::string found = "berthd " + printable_line(info.version(), 64) + " answers at " + where +
                      ", pid " + std::to_string(info.pid()) + ", " +
                      printable_line(info.state(), 32);
  if (info.resident_bytes() > 0) found += ", uses " + format_bytes(info.resident_bytes());
  if (info.version() == kVersion) {
    state.checks.push_back(ok("daemon", found));
  } else {
    state.checks.push_back(warning("daemon", found,
                                   "this is berth " + std::string(kVersion) +
                                       ": install the same version of both, and restart berthd"));
  }
  for (const std::string& problem : info.degraded()) {
    state.checks.push_back(
        warning("daemon", printable_line(problem, 1024), "see 'berth events --prefix server.'"));
  }
  if (info.loop_lag_us() > kLateLoopUs) {
    state.checks.push_back(warning(
        "daemon", "its core loop was late by " + std::to_string(info.loop_lag_us() / 1000) + " ms",
        "is the machine overloaded, or its disk very slow?"));
  }
  state.directories = {{"state_dir", info.state_dir()}, {"log_dir", info.log_dir()}};
}

// Where the caller may see it.
void look_at_memory(DaemonState& state, Client& client, const v1::ServerInfo& info) {
  auto memory = client.memory();
  if (!memory) return;
  const std::vector<std::string> problems(memory->problems().begin(), memory->problems().end());
  memory->clear_problems();
  for (const std::string& problem : problems) {
    const auto& told = info.degraded();
    if (std::find(told.begin(), told.end(), problem) == told.end()) memory->add_problems(problem);
  }
  state.memory = *std::move(memory);
}

// The running daemon's program, where it runs on this machine and may be looked at.
std::string program_of(int pid) {
  std::error_code unknown;
  const auto path = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", unknown);
  return path.filename() == "berthd" ? path.string() : std::string();
}

// berthd sits in a cgroup `supervisor` where it gives its workers such. Where its /proc cannot be
// seen nothing is said.
void check_worker_cgroups(DaemonState& state, int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("0::/")) continue;
    state.checks.push_back(line.ends_with("/supervisor")
                               ? ok("worker cgroups", "each worker has one of its own")
                               : ok("worker cgroups",
                                    "not used; workers are ended by signals (berthd has them as a "
                                    "service with Delegate=yes)"));
    return;
  }
}

}  // namespace

DaemonState look_at_daemon(Context& context) {
  DaemonState state;
  const auto& endpoint = context.endpoint();
  if (!endpoint) {
    state.checks.push_back(
        error("endpoint", endpoint.error().message, "correct it, or leave it away"));
    check_config(state, context.environment());
    return state;
  }
  if (!context.access()) {
    state.checks.push_back(
        error("key or TLS", context.access().error().message, "correct it, or leave it away"));
    check_config(state, context.environment());
    return state;
  }
  const std::string where = printable_line(endpoint->text, 256);
  std::optional<v1::ServerInfo> info;
  std::string problem;
  if (auto client = context.client()) {
    auto reply = (*client)->server_info();
    if (reply) {
      info = std::move(*reply);
      look_at_memory(state, **client, *info);
    } else {
      problem = reply.error().kind == CallError::Kind::kRefused ? reply.error().detail.message()
                                                                : reply.error().message;
    }
  } else {
    problem = client.error().message;
  }
  if (info) {
    check_info(state, *info, where);
    if (!endpoint->socket.empty()) state.program = program_of(info->pid());
    if (!state.program.empty()) check_worker_cgroups(state, info->pid());
    const auto directories = state.directories;
    check_config(state, context.environment());
    // What the daemon uses counts, not what the file says by now.
    state.directories = directories;
    return state;
  }
  problem = printable_line(problem, 1024);
  const bool only_usual = endpoint->origin == "default";
  if (only_usual && !endpoint->socket.empty() && ::access(endpoint->socket.c_str(), F_OK) != 0) {
    state.checks.push_back(warning("daemon", "not running at " + where + ": " + problem,
                                   "start it: systemctl start berthd, or berthd --demo DIR; where "
                                   "it listens elsewhere, set BERTH_ENDPOINT"));
  } else {
    state.checks.push_back(error("daemon", "not reachable at " + where + ": " + problem,
                                 "is it running? see systemctl status berthd"));
  }
  check_config(state, context.environment());
  return state;
}

}  // namespace berth::cli
