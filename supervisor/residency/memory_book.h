#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/uuid.h"
#include "supervisor/core/memory/placement.h"
#include "supervisor/residency/residency.h"

namespace berth::residency {

// What every instance takes of the memory, from its creation until that is proven back (L2, M10).
// Owns the charges and the proofs that are under way. Core strand; lives as long as the residency.
// Nothing fails: what cannot be proven counts as back after kProofWait, and an event says so.
class MemoryBook {
 public:
  static constexpr Duration kProofWait = std::chrono::seconds(5);
  static constexpr Duration kLookAgain = std::chrono::milliseconds(250);
  // Of what was attributed to an instance at its stop, so much must be seen to come back.
  static constexpr std::uint64_t kProofPercent = 75;

  // One instance that is charged.
  struct Line {
    std::string model;
    core::PlacementOption at{};
    std::optional<core::Charge> measured{};  // what at.bytes is made of since it was measured
    // Devices as they were at its stop; absent: it was not stopped yet. Empty: no figure is there
    // that does not come from its own worker.
    std::optional<std::vector<DeviceUse>> at_stop{};
    pid_t pid = 0;
    std::optional<SteadyTime> gone{};  // its process is, and its memory not proven back
    bool sampled = false;              // since then
    Timer look{};                      // the next one for its proof
    Timer end{};                       // of the proof
  };

  // `changed` is called when a charge ends. The environment outlives it.
  MemoryBook(const Environment& environment, std::function<void()> changed);
  MemoryBook(const MemoryBook&) = delete;
  MemoryBook& operator=(const MemoryBook&) = delete;
  ~MemoryBook();

  void charge(const Uuid& instance, std::string model, core::PlacementOption at);
  // It was measured. Not once it is stopped: what is to come back is known then. Whether that
  // changed something.
  bool recharge(const Uuid& instance, const MeasuredCharge& charge);
  // It is being stopped, or is gone: what drivers attribute to it now is what must come back.
  // Nothing happens the second time.
  void note_stop(const Uuid& instance, pid_t pid);
  // Its process is gone; 0: there never was one, so that there is nothing to prove.
  void note_gone(const Uuid& instance, pid_t pid);

  [[nodiscard]] const std::map<Uuid, Line>& lines() const { return lines_; }
  // Some process is gone and its memory not proven back, so that samples are about to change.
  [[nodiscard]] bool proving() const;
  // What processes that are gone were not seen to give back yet: samples take it for foreign.
  [[nodiscard]] core::DomainBytes unreturned() const;
  // Null: it is not charged.
  [[nodiscard]] const Line* find(const Uuid& instance) const;

 private:
  void sample(const Uuid& instance, pid_t pid);
  void on_sample(const Uuid& instance, pid_t pid);
  void give_up(const Uuid& instance, pid_t pid);
  void end(std::map<Uuid, Line>::iterator line);

  const Environment& environment_;
  const std::function<void()> changed_;
  std::map<Uuid, Line> lines_;
  // A sample may be there after its end.
  const std::shared_ptr<MemoryBook*> self_ = std::make_shared<MemoryBook*>(this);
};

}  // namespace berth::residency
