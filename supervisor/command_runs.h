#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "supervisor/process/http_call.h"
#include "supervisor/process/port.h"
#include "supervisor/rpc/command_client.h"

namespace berth {

// How one instance of a command model is reached.
struct CommandRun {
  std::string model;
  process::HttpAddress address;
  std::string key;  // of this instance alone; nobody else knows it
  rpc::CommandProbe probe;
  std::uint32_t sequences = 1;
  pid_t pid = 0;  // root of its process tree; 0: not started yet
  std::shared_ptr<const process::PortClaim> port_claim = {};  // until its load is over, at least
};

// What the launch of a command model leaves for the one who connects to it. The newest run of each
// model, so it is bounded by the catalogue; its port is no other program's until the model runs
// again. Core strand only, except for ports().
class CommandRuns {
 public:
  // Of all that run. Any thread.
  process::PortBook& ports() { return ports_; }

  void put(const std::string& instance, CommandRun run) {
    const std::string model = run.model;  // before it is moved from
    runs_[model] = {instance, std::move(run)};
  }
  void started(const std::string& model, const std::string& instance, pid_t pid) {
    const auto found = runs_.find(model);
    if (found != runs_.end() && found->second.instance == instance) found->second.run.pid = pid;
  }
  // Nothing: the instance is no command.
  [[nodiscard]] std::optional<CommandRun> find(const std::string& instance) const {
    for (const auto& [model, entry] : runs_) {
      if (entry.instance == instance) return entry.run;
    }
    return std::nullopt;
  }

 private:
  struct Entry {
    std::string instance;
    CommandRun run;
  };
  process::PortBook ports_;
  std::map<std::string, Entry> runs_;  // by model
};

}  // namespace berth
