#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "supervisor/process/http_call.h"
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
};

// What the launch of a command model leaves for the one who connects to it. The newest run of each
// model, so it is bounded by the catalogue. Core strand only.
class CommandRuns {
 public:
  void put(const std::string& instance, CommandRun run) {
    runs_[run.model] = {instance, std::move(run)};
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
  std::map<std::string, Entry> runs_;  // by model
};

}  // namespace berth
