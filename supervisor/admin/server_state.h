#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "supervisor/admin/caller_watch.h"
#include "supervisor/admin/event_hub.h"
#include "supervisor/catalog/config.h"
#include "supervisor/core/memory/measured_load.h"
#include "supervisor/core/memory/pressure.h"
#include "supervisor/process/async.h"
#include "supervisor/residency/services.h"
#include "supervisor/store/store.h"

namespace berth::admin {

// One memory domain as it is where nothing is counted, bytes; absent: not known.
struct DomainMemory {
  std::string id;  // "host" or a device's
  std::optional<std::uint64_t> total;
  std::optional<std::uint64_t> available;
};

// What the admin service shows of the server beside models and instances. References outlive the
// service. Core strand, unless a comment says otherwise.
struct StateCopy;
struct SharedCopy {
  std::shared_ptr<const StateCopy> copy;
  SteadyTime since{};
};

struct ServerState {
  residency::Services services;
  store::Store& store;
  EventHub& events;  // thread-safe
  // Thread-safe; never null.
  std::shared_ptr<CallerWatch> callers = std::make_shared<CallerWatch>();
  std::shared_ptr<const catalog::Config> config;  // another one after a reload
  WallTime started{};
  std::string http;               // where it listens; empty: nowhere
  std::vector<std::string> grpc;  // where it listens
  // starting | ready | draining
  std::function<std::string()> state;
  std::function<std::vector<std::string>()> degraded;
  std::function<Duration()> loop_lag;

  // The catalogue's name of a model that is in the catalogue, or that is resident though its file
  // is gone: what `berth ps` shows can be unloaded, and its log read. Errors: kUnknownModel.
  [[nodiscard]] Result<std::string> name_of(const std::string& name) const;

  // Proportional set size of a process, and of a child with all its descendants, bytes; 0: unknown.
  // Any thread; they read /proc.
  std::function<std::uint64_t(pid_t)> process_memory;
  std::function<std::uint64_t(pid_t)> tree_memory;
  // Any thread.
  std::function<std::vector<DomainMemory>()> domains;
  // May be empty.
  std::function<std::vector<core::LoadRatio>()> load_ratios{};
  process::OnReadable on_readable;
  process::RunBlocking run_blocking;
  // How short of memory the machine is; absent, or empty: not known.
  std::function<std::optional<core::Pressure>()> pressure{};
  // What of the memory's configuration cannot be kept, one sentence each. May be empty.
  std::function<std::vector<std::string>()> memory_problems{};

  // What those who watch the state are shown, by tenant; empty: admins.
  std::map<std::string, SharedCopy> shared_copies{};
};

}  // namespace berth::admin
