#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/durations.h"
#include "supervisor/memory/host_memory.h"
#include "supervisor/memory_keeper.h"

// What the keeper tells of what it found.
namespace berth {
namespace {

std::string words_of(const core::Pressure& pressure) {
  std::string text;
  for (const core::PressureEvidence& sign : pressure.evidence) {
    if (!text.empty()) text += ", ";
    text += core::pressure_sign_name(sign.sign);
    if (!sign.domain.empty()) text += " of " + sign.domain;
  }
  return text;
}

}  // namespace

void MemoryKeeper::take_pressure() {
  core::PressureSample sample = memory::pressure_sample(domains_, now_, allocation_failures_);
  const core::PressureLevel before = pressure_.level;
  pressure_ = core::pressure_of(sample, pressure_sample_ ? &*pressure_sample_ : nullptr);
  pressure_sample_ = std::move(sample);
  if (pressure_.level == before) return;
  parts_.events.emit_typed(
      events::MemoryPressure{.now = std::string(core::pressure_level_name(pressure_.level)),
                             .before = std::string(core::pressure_level_name(before)),
                             .source = std::string(core::pressure_source_name(pressure_.source)),
                             .evidence = words_of(pressure_)});
  const bool was_critical = before == core::PressureLevel::kCritical;
  if (parts_.on_changed && critical() != was_critical) parts_.on_changed();
}

void MemoryKeeper::tell_processes() {
  if (!parts_.on_process) return;
  std::map<pid_t, std::uint64_t> on_host;
  for (const memory::OwnProcess& process : now_.host.processes) {
    on_host[process.child] += process.bytes;
  }
  for (const auto& [child, bytes] : on_host) {
    parts_.on_process(child, core::kHostDomain, bytes);
    for (std::size_t i = 1; i < domains_.size(); ++i) {
      const memory::DeviceReading* const device = memory::reading_of(domains_[i], now_.devices);
      if (device == nullptr || domains_[i].lost) continue;
      const std::uint64_t held = memory::own_use(*device, now_, child).value_or(0);
      if (held > 0) parts_.on_process(child, static_cast<core::DomainIndex>(i), held);
    }
  }
}

void MemoryKeeper::hear(Source& source) {
  const SteadyTime now = parts_.clock.now();
  const SteadyTime before = std::exchange(source.answered, now);
  if (std::exchange(source.problem, {}).empty()) return;
  parts_.events.emit_typed(
      events::MemoryHeard{.source = source.name, .silent_ms = whole_milliseconds(now - before)});
}

void MemoryKeeper::miss(Source& source, std::string problem) {
  const bool known = !std::exchange(source.problem, std::move(problem)).empty();
  if (known) return;
  parts_.events.emit_typed(events::MemorySilent{.source = source.name, .problem = source.problem});
}

std::vector<std::string> MemoryKeeper::problems() const {
  std::vector<std::string> all = lacks();
  for (const Source* const source : {&host_source_, &driver_source_}) {
    if (!source->problem.empty()) all.push_back(source->problem);
  }
  return all;
}

std::vector<std::string> MemoryKeeper::lacks() const {
  std::vector<std::string> all = table_.problems;
  if (!list_problem_.empty()) all.push_back(list_problem_);
  for (const core::Domain& domain : domains_) {
    const bool used = std::ranges::any_of(table_.by_device, [&](const auto& device) {
      return table_.domains[device.second].id != domain.id && device.first == domain.device;
    });
    // One whose memory counts in another domain by now is not missed.
    if (domain.lost && !used) {
      all.push_back(domain.id + " is not there, or does not answer: nothing new is loaded there.");
    }
  }
  return all;
}

std::vector<core::DomainNow> MemoryKeeper::free_now() const {
  memory::MachineReading now = now_;
  if (const auto machine = memory::read_host_memory()) now.host.machine = *machine;
  const auto free = memory::free_now(domains_, now);
  std::vector<core::DomainNow> all;
  for (std::size_t i = 0; i < domains_.size(); ++i) {
    all.push_back({domains_[i].id, free[i], std::nullopt});
  }
  return all;
}

void MemoryKeeper::show() {
  const auto free = memory::free_now(domains_, now_);
  std::vector<admin::DomainMemory> all;
  for (std::size_t i = 0; i < domains_.size(); ++i) {
    all.push_back({domains_[i].id, domains_[i].total, free[i]});
  }
  if (now_.host.machine) all.front().total = memory::usable_host_memory(now_.host);
  const std::lock_guard lock(mutex_);
  shown_.swap(all);
}

std::vector<admin::DomainMemory> MemoryKeeper::shown() const {
  const std::lock_guard lock(mutex_);
  return shown_;
}

residency::MemoryAccess MemoryKeeper::access() {
  residency::MemoryAccess access;
  access.domains = [this] { return domains_; };
  access.sample = [this](std::function<void()> done) { sample(std::move(done)); };
  access.device_use = [this](pid_t pid) { return device_use(pid); };
  access.critical_pressure = [this] { return critical(); };
  return access;
}

std::vector<residency::DeviceUse> MemoryKeeper::device_use(pid_t pid) const {
  std::vector<residency::DeviceUse> all;
  for (std::size_t i = 1; i < domains_.size(); ++i) {
    const memory::DeviceReading* const device = memory::reading_of(domains_[i], now_.devices);
    if (device == nullptr || domains_[i].lost) continue;
    const auto ours = memory::own_use(*device, now_);
    const auto of_process = memory::own_use(*device, now_, pid);
    if (!ours || !of_process) continue;
    const std::uint64_t others = *ours - *of_process;
    all.push_back({static_cast<core::DomainIndex>(i), device->used - std::min(device->used, others),
                   *of_process});
  }
  return all;
}

}  // namespace berth
