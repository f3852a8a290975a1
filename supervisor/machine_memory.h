#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/event.h"
#include "supervisor/core/memory/domain_table.h"
#include "supervisor/device_lister.h"
#include "supervisor/memory/device_probe.h"
#include "supervisor/memory_keeper.h"
#include "supervisor/process/async.h"
#include "supervisor/process/launcher.h"
#include "supervisor/residency/residency.h"

namespace berth {

// The keeper of the memory domains with what it looks at this machine with: berth-worker lists the
// devices, NVIDIA's driver tells of its own by NVML, /proc of the host. Core strand; lives as long
// as the program.
class MachineMemory {
 public:
  struct Parts {
    Clock& clock;
    EventSink& events;
    process::RunBlocking run_blocking;
    process::OnReadable on_readable;
    process::Launcher& launcher;
    std::string worker_program;            // absolute
    std::vector<std::string> environment;  // berthd's own
    // The control group that holds all our processes; empty: the one that berthd is in.
    std::string cgroup;
    core::BudgetConfig budgets;
    std::function<std::vector<residency::InstanceSnapshot>()> instances;
    std::function<void()> on_changed;  // as MemoryKeeper::Parts
    std::function<void(pid_t child, core::DomainIndex domain, std::uint64_t bytes)> on_process{};
  };

  explicit MachineMemory(Parts parts);
  MachineMemory(const MachineMemory&) = delete;
  MachineMemory& operator=(const MachineMemory&) = delete;
  ~MachineMemory() = default;

  [[nodiscard]] MemoryKeeper& keeper() { return keeper_; }
  // A load that failed for want of memory is a sign of pressure (S18).
  void on_event(const Event& event);

 private:
  Clock& clock_;
  WorkerDeviceLister lister_;
  const std::unique_ptr<memory::DeviceProbe> probe_;
  MemoryKeeper keeper_;
};

}  // namespace berth
