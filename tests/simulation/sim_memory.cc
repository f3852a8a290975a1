#include "tests/simulation/sim_memory.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/core/memory/snapshot.h"
#include "tests/simulation/sim_worker.h"

namespace berth::sim {

residency::MemoryAccess SimMemory::access() {
  if (domains.empty()) return {};
  residency::MemoryAccess access;
  access.domains = [this] { return now(); };
  access.need = [this](const catalog::Model& model, const core::Snapshot& snapshot,
                       const core::Need& need) {
    const bool company =
        need.company || std::ranges::any_of(snapshot.entries, [&](const core::Entry& entry) {
          return entry.model != model.name && entry.state <= core::EntryState::kReady;
        });
    residency::MemoryNeed found;
    if (const auto at = needs.find(model.name); at != needs.end()) found.options = at->second;
    const auto alone = needs_alone.find(model.name);
    if (!company && alone != needs_alone.end()) found.options = alone->second;
    return found;
  };
  access.device_problem = [this](const catalog::Model& model) {
    const auto at = device_problems.find(model.name);
    return at == device_problems.end() ? std::string() : at->second;
  };
  access.sample = [this](std::function<void()> done) { sample(std::move(done)); };
  access.device_use = [this](pid_t pid) { return device_use(pid); };
  access.bank = [this] { return residency::BankUse{.held = bank, .floor = {}}; };
  access.shrink_bank = [this](const core::DomainBytes& keep) { shrink_bank(keep); };
  if (jobs) {
    access.jobs = jobs;
    access.yield_jobs = yield_jobs;
  }
  access.would_fit = [this](const catalog::Model& /*model*/, const core::Snapshot& /*snapshot*/) {
    return would_fit;
  };
  if (files_are_sane) {
    access.check = [this](const std::shared_ptr<const catalog::Model>& model,
                          std::function<void(Status)> done) {
      clock_.post_from("pool", [this, name = model->name, done = std::move(done)] {
        if (files_are_sane(name)) return done({});
        ErrorExtras extras;
        extras.failure.emplace().failure_class = "permanent";
        extras.failure->reason = "its file ends too early.";
        done(fail(Error(Reason::kLoadFailed, "the file of " + name + " ends too early",
                        std::move(extras))));
      });
    };
  }
  return access;
}

void SimMemory::sample(std::function<void()> done) {
  if (sample_never_comes) return;
  // The helper's thread keeps its own time; the timer lives as long as its callback.
  const auto timer = std::make_shared<Timer>();
  *timer = clock_.sleep_for(sample_takes, [this, timer, done = std::move(done)] {
    clock_.post_from("sampler", [this, done] {
      sampled_ = clock_.now();
      done();
    });
    timer->reset();
  });
}

void SimMemory::shrink_bank(const core::DomainBytes& keep) {
  keep_ = keep;
  if (shrink_.armed()) return;
  shrink_ = clock_.sleep_for(shrink_takes, [this] {
    shrink_.reset();
    for (core::DomainIndex i = 0; i < core::kMaxDomains; ++i) {
      bank[i] = std::min(bank[i], keep_[i]);
    }
    if (changed) changed();
  });
}

const core::PlacementOption* SimMemory::placed(const std::string& instance) const {
  const auto at = placed_.find(instance);
  return at == placed_.end() ? nullptr : &at->second;
}

core::DomainBytes SimMemory::held_by(const SimWorker& worker) const {
  const core::PlacementOption* const at = placed(worker.instance());
  if (at == nullptr) return {};
  if (!worker.ended()) return at->bytes;
  core::DomainBytes left;
  if (clock_.now() < *worker.ended() + worker.script().memory_comes_back) {
    left = at->bytes;
    left[core::kHostDomain] = 0;
  }
  return left;
}

core::Domains SimMemory::now() const {
  core::Domains all = domains;
  for (const auto& worker : workers_.all()) {
    if (!worker->reaped()) continue;
    // The last sample still counted it as ours.
    if (!sample_never_comes && sampled_ < *worker->ended()) continue;
    const core::DomainBytes held = held_by(*worker);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].foreign += held[static_cast<core::DomainIndex>(i)];
    }
  }
  return all;
}

std::vector<residency::DeviceUse> SimMemory::device_use(pid_t pid) const {
  std::vector<residency::DeviceUse> uses;
  const auto worker = std::ranges::find(workers_.all(), pid, &SimWorker::pid);
  if (worker == workers_.all().end()) return uses;
  const core::PlacementOption* const at = placed((*worker)->instance());
  if (at == nullptr) return uses;
  // Samples come now and then; the last one is of before its death until one was asked for.
  const bool lived = !(*worker)->ended() || sampled_ < *(*worker)->ended();
  const core::DomainBytes held = lived ? at->bytes : held_by(**worker);
  for (std::size_t i = 1; i < domains.size(); ++i) {
    const auto device = static_cast<core::DomainIndex>(i);
    uses.push_back({device, domains[i].foreign + held[device], lived ? held[device] : 0});
  }
  return uses;
}

}  // namespace berth::sim
