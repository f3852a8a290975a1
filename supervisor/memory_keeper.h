#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/event.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/core/ledger/memory_rule.h"
#include "supervisor/core/memory/domain.h"
#include "supervisor/core/memory/domain_table.h"
#include "supervisor/core/memory/pressure.h"
#include "supervisor/device_lister.h"
#include "supervisor/memory/device_probe.h"
#include "supervisor/memory/domain_view.h"
#include "supervisor/memory/host_reading.h"
#include "supervisor/memory_round.h"
#include "supervisor/process/async.h"
#include "supervisor/residency/memory_access.h"
#include "supervisor/told_problems.h"

namespace berth {

// Knows the memory domains of this machine (M1) and what is used of them (M3): lists the devices at
// the start, with each reload and after the machine slept, and reads everything every second, or
// every ten where the kernel does not tell of stalls. Keeps the level of pressure (S18). Core
// strand only, but for shown(); lives as long as the program. Nothing fails: what cannot be listed
// or read is a problem() with an event, and the last figures stay.
class MemoryKeeper {
 public:
  // A driver that does not answer for so long: nothing new is placed on its devices.
  static constexpr Duration kDriverPatience = std::chrono::seconds(10);
  // The kernel tells nothing of the host for so long: that is a problem.
  static constexpr Duration kHostPatience = std::chrono::seconds(10);
  // Between two questions to the driver where no instance is there.
  static constexpr Duration kIdleDriver = std::chrono::seconds(10);
  // The boot clock ran ahead of the other one by so much: the machine slept.
  static constexpr Duration kSlept = std::chrono::seconds(1);
  // Changes of foreign use below that are not told.
  static constexpr std::uint64_t kTellBytes = std::uint64_t{1} << 20U;

  struct Parts {
    Clock& clock;
    EventSink& events;
    process::RunBlocking run_blocking;
    DeviceLister& lister;
    memory::DeviceProbe& probe;
    std::function<memory::HostReading()> read_host;  // blocks; never two at a time
    core::BudgetConfig budgets;
    bool other_numbers = false;  // as MachineReading::other_numbers
    // The instances; for devices whose driver does not tell whose memory is whose. May be empty.
    std::function<std::vector<memory::ChargedProcess>()> charged{};
    // What domains() shows is another thing now. May be empty.
    std::function<void()> on_changed{};
    // After each sample, for each child of berthd and what descends from it: what it holds there.
    // May be empty.
    std::function<void(pid_t child, core::DomainIndex domain, std::uint64_t bytes)> on_process{};
  };

  explicit MemoryKeeper(Parts parts);
  MemoryKeeper(const MemoryKeeper&) = delete;
  MemoryKeeper& operator=(const MemoryKeeper&) = delete;
  ~MemoryKeeper();

  // Lists the devices and reads everything once; then `done`, some 8 s later at the latest. Once,
  // before anything is loaded.
  void start(std::function<void()> done);
  // Other budgets, or the same ones: they hold at once, and the devices are listed again. A domain
  // keeps its row.
  void use(const core::BudgetConfig& budgets);
  // One of our processes was refused memory.
  void note_allocation_failure() { ++allocation_failures_; }

  [[nodiscard]] const core::DomainTable& table() const { return table_; }
  // As last sampled; the host first.
  [[nodiscard]] const core::Domains& domains() const { return domains_; }
  [[nodiscard]] const core::Pressure& pressure() const { return pressure_; }
  // Of the machine, as far as our control group lets us have it; bytes, 0: not known.
  [[nodiscard]] std::uint64_t main_memory() const { return memory::usable_host_memory(now_.host); }
  // What is free in each domain; of the host at this moment. Some 20 us (L21).
  [[nodiscard]] std::vector<core::DomainNow> free_now() const;
  // For people. Any thread.
  [[nodiscard]] std::vector<admin::DomainMemory> shown() const;
  // One sentence each.
  [[nodiscard]] std::vector<std::string> problems() const;

  // What the keeper itself can say of it; the caller adds what it needs of models. Must not be used
  // after the keeper's end.
  [[nodiscard]] residency::MemoryAccess access();

 private:
  // What tells of a memory.
  struct Source {
    std::string name;
    SteadyTime answered{};
    std::string problem{};  // empty: it answers, or is not missed
  };

  void list(std::function<void()> done);
  void on_listed(DeviceLister::Devices devices);
  void make_table();
  void sample(std::function<void()> done);
  void begin_round();
  void on_round(MemoryRound::Found found);
  void hear(Source& source);
  void miss(Source& source, std::string problem);
  void take_host(std::optional<memory::HostReading> host);
  void take_devices(const memory::DeviceProbe::Readings& readings);
  [[nodiscard]] std::vector<memory::ChargedProcess> charged_now() const;
  void look();
  // Once for each round: its counters rise from one to the next.
  void take_pressure();
  void tell_processes();
  // The problems but those of sources, which have events of their own.
  [[nodiscard]] std::vector<std::string> lacks() const;
  [[nodiscard]] bool tells_more(const core::Domains& before) const;
  [[nodiscard]] std::vector<residency::DeviceUse> device_use(pid_t pid) const;
  [[nodiscard]] bool critical() const { return pressure_.level == core::PressureLevel::kCritical; }
  void put_listed_use(core::DomainTable& table) const;
  void show();
  void notice_sleep();

  Parts parts_;
  MemoryRound round_;
  std::vector<core::ListedDevice> listed_;
  std::string list_problem_;  // empty: none
  bool listing_ = false;
  bool list_again_ = false;
  bool host_known_ = false;  // in the table
  std::vector<std::function<void()>> list_done_;

  core::DomainTable table_;
  core::Domains domains_;
  memory::MachineReading now_;
  core::Pressure pressure_;
  std::optional<core::PressureSample> pressure_sample_;
  std::uint64_t allocation_failures_ = 0;

  std::set<std::string> driver_ids_;  // of all devices that it ever told of
  SteadyTime driver_asked_{};
  bool ask_driver_ = false;   // in the next round, whatever is known of it
  bool no_driver_ = false;    // there is none to ask until the next listing
  bool driver_late_ = false;  // it answered before, and does not any more
  Source host_source_{.name = "host"};
  Source driver_source_{.name = "driver"};

  std::vector<std::function<void()>> wanted_;  // samples that begin after they were asked for
  std::vector<std::function<void()>> under_way_;
  bool running_ = false;
  Timer next_;
  Timer list_later_;
  Duration ahead_{};  // the boot clock's lead
  ToldProblems told_;
  std::string told_domains_;

  mutable std::mutex mutex_;  // of what is shown; held only to copy it
  std::vector<admin::DomainMemory> shown_;
  const std::shared_ptr<MemoryKeeper*> self_ = std::make_shared<MemoryKeeper*>(this);
};

}  // namespace berth
