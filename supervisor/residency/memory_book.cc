#include "supervisor/residency/memory_book.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/durations.h"
#include "common/event.h"
#include "common/uuid.h"
#include "supervisor/core/mutation.h"

namespace berth::residency {
namespace {

using core::mutated;
using core::Mutation;

// By how much the use of that device fell since then. Bytes.
std::uint64_t fall(const DeviceUse& before, const std::vector<DeviceUse>& now) {
  const auto after = std::ranges::find(now, before.domain, &DeviceUse::domain);
  return after == now.end() ? 0 : before.used - std::min(before.used, after->used);
}

// How much of all devices is back, against how it was at the stop.
struct Proof {
  std::uint64_t attributed = 0;  // bytes, over all devices
  std::uint64_t returned = 0;
  bool complete = true;  // on every device enough of it
};

Proof prove(const std::vector<DeviceUse>& at_stop, const std::vector<DeviceUse>& now) {
  Proof proof;
  for (const DeviceUse& before : at_stop) {
    proof.attributed += before.of_process;
    const std::uint64_t returned = fall(before, now);
    proof.returned += returned;
    if (returned < before.of_process / 100 * MemoryBook::kProofPercent) proof.complete = false;
  }
  return proof;
}

}  // namespace

MemoryBook::MemoryBook(const Environment& environment, std::function<void()> changed)
    : environment_(environment), changed_(std::move(changed)) {}

MemoryBook::~MemoryBook() {
  *self_ = nullptr;
}

void MemoryBook::charge(const Uuid& instance, std::string model, core::PlacementOption at) {
  lines_.emplace(instance, Line{.model = std::move(model), .at = std::move(at)});
}

bool MemoryBook::recharge(const Uuid& instance, const MeasuredCharge& charge) {
  const auto line = lines_.find(instance);
  if (line == lines_.end() || line->second.at_stop || mutated(Mutation::kGrowthIgnored)) {
    return false;
  }
  line->second.measured = charge.terms;
  return std::exchange(line->second.at.bytes, charge.bytes) != charge.bytes;
}

const MemoryBook::Line* MemoryBook::find(const Uuid& instance) const {
  const auto line = lines_.find(instance);
  return line == lines_.end() ? nullptr : &line->second;
}

bool MemoryBook::proving() const {
  return std::ranges::any_of(lines_, [](const auto& line) { return line.second.gone.has_value(); });
}

core::DomainBytes MemoryBook::unreturned() const {
  core::DomainBytes all;
  for (const auto& [id, line] : lines_) {
    if (!line.sampled || line.at_stop->empty()) continue;
    const std::vector<DeviceUse> now = environment_.memory_access.device_use(line.pid);
    for (const DeviceUse& before : *line.at_stop) {
      const std::uint64_t left = before.of_process - std::min(before.of_process, fall(before, now));
      all += core::DomainBytes::in(before.domain, left);
    }
  }
  return all;
}

void MemoryBook::note_stop(const Uuid& instance, pid_t pid) {
  const auto line = lines_.find(instance);
  if (line == lines_.end() || line->second.at_stop) return;
  if (mutated(Mutation::kChargeDroppedAtStop)) return end(line);
  line->second.at_stop.emplace();
  if (pid == 0 || !environment_.memory_access.device_use) return;
  line->second.pid = pid;
  for (const DeviceUse& use : environment_.memory_access.device_use(pid)) {
    if (use.of_process > 0) line->second.at_stop->push_back(use);
  }
}

void MemoryBook::note_gone(const Uuid& instance, pid_t pid) {
  const auto line = lines_.find(instance);
  if (line == lines_.end() || line->second.gone || mutated(Mutation::kChargeNeverReturned)) return;
  if (pid == 0 || mutated(Mutation::kNoProof)) return end(line);
  note_stop(instance, pid);
  line->second.gone = environment_.clock.now();
  line->second.end =
      environment_.clock.sleep_for(kProofWait, [this, instance, pid] { give_up(instance, pid); });
  sample(instance, pid);
}

void MemoryBook::sample(const Uuid& instance, pid_t pid) {
  const auto seen = [self = self_, instance, pid] {
    if (*self != nullptr) (*self)->on_sample(instance, pid);
  };
  if (environment_.memory_access.sample) return environment_.memory_access.sample(seen);
  environment_.clock.post(seen);
}

void MemoryBook::on_sample(const Uuid& instance, pid_t pid) {
  const auto line = lines_.find(instance);
  if (line == lines_.end() || !line->second.gone) return;
  line->second.sampled = true;
  const std::vector<DeviceUse>& at_stop = *line->second.at_stop;
  Proof proof;
  if (!at_stop.empty()) proof = prove(at_stop, environment_.memory_access.device_use(pid));
  if (!proof.complete) {
    line->second.look =
        environment_.clock.sleep_for(kLookAgain, [this, instance, pid] { sample(instance, pid); });
    return;
  }
  environment_.events.emit_typed(events::MemoryReturned{
      .model = line->second.model,
      .instance = instance.to_string(),
      .proof = at_stop.empty() ? "exit" : "device",
      .attributed_bytes = static_cast<std::int64_t>(proof.attributed),
      .returned_bytes = static_cast<std::int64_t>(proof.returned),
      .took_ms = whole_milliseconds(environment_.clock.now() - *line->second.gone)});
  end(line);
}

void MemoryBook::give_up(const Uuid& instance, pid_t pid) {
  const auto line = lines_.find(instance);
  if (line == lines_.end() || !line->second.gone) return;
  Proof proof;
  if (!line->second.at_stop->empty()) {
    proof = prove(*line->second.at_stop, environment_.memory_access.device_use(pid));
  }
  environment_.events.emit_typed(events::MemoryNotReturned{
      .model = line->second.model,
      .instance = instance.to_string(),
      .attributed_bytes = static_cast<std::int64_t>(proof.attributed),
      .returned_bytes = static_cast<std::int64_t>(proof.returned),
      .took_ms = whole_milliseconds(environment_.clock.now() - *line->second.gone)});
  end(line);
}

void MemoryBook::end(std::map<Uuid, Line>::iterator line) {
  // This may run in one of its timers.
  const auto node = lines_.extract(line);
  changed_();
}

}  // namespace berth::residency
