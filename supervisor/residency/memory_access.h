#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/catalog/model.h"
#include "supervisor/core/memory/charge.h"
#include "supervisor/core/memory/domain.h"
#include "supervisor/core/memory/placement.h"
#include "supervisor/core/memory/snapshot.h"
#include "supervisor/core/memory/window.h"

namespace berth::residency {

// Where an instance is to run, and with how much, as it was admitted.
struct LaunchPlan {
  core::PlacementOption at{};
  std::uint32_t window = 0;                  // tokens (M6); 0: as the catalogue says
  core::Charge terms{};                      // what `at.bytes` is made of, as far as that is known
  std::optional<core::WindowBound> bound{};  // what decided the window; absent: it has none

  bool operator==(const LaunchPlan&) const = default;
};

// What an instance is charged once it was measured (M5).
struct MeasuredCharge {
  core::DomainBytes bytes{};
  core::Charge terms{};  // what that is made of, as far as it is known

  bool operator==(const MeasuredCharge&) const = default;
};

// What an instance of a model needs, judged on one snapshot.
struct MemoryNeed {
  // Ways to place it, with their charges. Empty, and no device missing: nothing is known of it, and
  // it is admitted without a charge.
  std::vector<core::PlacementOption> options{};
  std::vector<std::string> missing_devices{};  // that the configuration asks for, by its names
  std::uint32_t window = 0;                    // tokens, that the charges are for
  std::optional<core::WindowBound> bound{};    // what decided the window; absent: it has none
};

// A device as its driver counts it, independent of what workers say.
struct DeviceUse {
  core::DomainIndex domain = 0;
  std::uint64_t used = 0;        // bytes, by all but our other processes
  std::uint64_t of_process = 0;  // of that, by the process that was asked for

  bool operator==(const DeviceUse&) const = default;
};

// What kept sessions take (M18). Bytes.
struct BankUse {
  core::DomainBytes held{};
  core::DomainBytes floor{};  // what idle work leaves of it
};

// What admission by bytes needs of the world. All of it may be empty; without `domains` nothing is
// counted and everything fits. Called on the core strand. Whatever is seen anew there is told by
// Residency::memory_changed().
struct MemoryAccess {
  // The domains as they were last sampled, the host first. Quick.
  std::function<core::Domains()> domains{};
  // What the model needs now, for a need whose options are to be made. Quick: tens of microseconds.
  // Empty: nothing is known of any model.
  std::function<MemoryNeed(const catalog::Model& model, const core::Snapshot& snapshot,
                           const core::Need& need)>
      need{};
  // Why the model can be put nowhere: a device that its settings name is not there; one sentence,
  // with those that are. Empty string: nothing of that kind. Quick. Empty: that is never so.
  std::function<std::string(const catalog::Model& model)> device_problem{};
  // The charge of that model there, with that window, term by term (M4). Quick. Empty: only its sum
  // is known.
  std::function<core::Charge(const catalog::Model& model, std::uint32_t window,
                             const core::Placement& placement)>
      terms{};
  // The largest window and number of sequences that would fit (M14). May take some milliseconds.
  std::function<std::optional<WouldFit>(const catalog::Model& model,
                                        const core::Snapshot& snapshot)>
      would_fit{};
  // Samples the domains and the devices anew; `done` comes on the core strand, never from within
  // the call, when domains() and device_use() show it. Empty: they are always fresh.
  std::function<void(std::function<void()> done)> sample{};
  // What drivers say of the devices that the process uses, as last sampled: at its stop, and again
  // when it is gone. Only devices whose use an independent figure tells (M10).
  std::function<std::vector<DeviceUse>(pid_t pid)> device_use{};
  // Whether a load can succeed as far as that can be told beforehand (L25): its files can be read,
  // all are there, they are sane. Asked before anything is taken away for it. Works on the pool,
  // answers on the core strand, never from within the call.
  std::function<void(std::shared_ptr<const catalog::Model> model, std::function<void(Status)> done)>
      check{};
  // The machine is critically short of memory (S18): grace protects nothing. Empty: it never is.
  std::function<bool()> critical_pressure{};
  std::function<BankUse()> bank{};
  // The bank is to keep no more than this, and not to grow while somebody waits; memory_changed()
  // says when it has shrunk. Comes again and again until then.
  std::function<void(const core::DomainBytes& keep)> shrink_bank{};
  // The idle work that runs (I4), and what it has beside the instances that it holds.
  std::function<std::vector<core::IdleJob>()> jobs{};
  // Each of them is to give its lease and its extra memory back within its bound; memory_changed()
  // says when. Told once; after the bound its instance is taken away.
  std::function<void(const std::vector<Uuid>& jobs)> yield_jobs{};
};

}  // namespace berth::residency
