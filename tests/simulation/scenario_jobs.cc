#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/uuid.h"
#include "supervisor/core/memory/snapshot.h"
#include "tests/simulation/scenario.h"

// Idle work that holds models softly and has memory beside them, the cache of kept sessions, and
// what an operator changes.
namespace berth::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kMiB = 1ULL << 20U;

}  // namespace

// What nobody has or waits for, by the supervisor's book: what a layer that takes memory may take.
core::DomainBytes Scenario::free_memory() const {
  const core::Snapshot now = residency_->memory_now();
  core::DomainBytes used = now.bank;
  for (const core::Entry& entry : now.entries) used += entry.charge;
  for (const core::IdleJob& job : now.jobs) used += job.extra;
  for (const core::Hold& hold : now.holds) used += hold.bytes;
  core::DomainBytes limits;
  for (std::size_t i = 0; i < now.domains.size(); ++i) {
    limits[static_cast<core::DomainIndex>(i)] = now.domains[i].limit();
  }
  return limits - used;
}

// --- idle work

void Scenario::begin_job() {
  if (world_.memory.domains.empty() || shutting_down_) return;
  for (const auto& request : requests_) {
    const bool idle = request->request_class() == residency::RequestClass::kIdle;
    if (!idle || request->state() != SimRequest::State::kHolding) continue;
    if (std::ranges::any_of(jobs_, [&](const auto& job) { return job->request == request.get(); }))
      continue;
    auto job = std::make_unique<Job>();
    job->request = request.get();
    job->idle.id = world_.ids.next();
    job->idle.kind = "context_probe";
    job->idle.model = request->model();
    job->idle.instance = Uuid::parse(request->held_instance());
    job->idle.since = world_.clock.now();
    job->idle.gives_way_within = random_.between(Duration::zero(), seconds(2));
    const auto domain = static_cast<core::DomainIndex>(random_.below(world_.memory.domains.size()));
    if (random_.percent(70)) {
      job->idle.extra[domain] = std::min(
          random_.between(std::uint64_t{1}, std::uint64_t{300}) * kMiB, free_memory()[domain]);
    }
    say("a job on " + job->idle.model + " with " + std::to_string(job->idle.extra[domain] / kMiB) +
        " MiB");
    jobs_.push_back(std::move(job));
    residency_->memory_changed();
    return;
  }
}

void Scenario::tell_to_yield(const std::vector<Uuid>& ids) {
  const bool wanted = std::ranges::any_of(requests_, [](const auto& request) {
    return request->state() == SimRequest::State::kWaiting &&
           request->request_class() != residency::RequestClass::kIdle;
  });
  if (!wanted) violate("idle work is told to yield for nobody");
  for (const Uuid& id : ids) {
    const auto found =
        std::ranges::find_if(jobs_, [&](const auto& job) { return job->idle.id == id; });
    if (found == jobs_.end()) {
      violate("a job is told to yield that there is not");
      continue;
    }
    Job& job = **found;
    if (job.until) violate("a job is told to yield a second time");
    job.until = world_.clock.now() + job.idle.gives_way_within;
    ++reached_["job told"];
    say("the job on " + job.idle.model + " is told to yield");
    Duration takes = random_.between(Duration::zero(), job.idle.gives_way_within);
    if (!calm_ && random_.percent(20)) takes += seconds(3);
    job.yields = world_.clock.sleep_for(takes, [request = job.request] { request->hang_up(); });
  }
}

void Scenario::end_job(const SimRequest* request, const std::string& instance) {
  const auto ended = std::erase_if(jobs_, [&](const std::unique_ptr<Job>& job) {
    if (job->request != request && job->idle.instance.to_string() != instance) return false;
    if (job->until) ++reached_[world_.clock.now() > *job->until ? "job late" : "job yielded"];
    return true;
  });
  if (ended > 0 && residency_) residency_->memory_changed();
}

// --- kept sessions

void Scenario::grow_bank() {
  if (world_.memory.domains.empty() || shutting_down_) return;
  const core::Snapshot now = residency_->memory_now();
  if (!now.holds.empty() || world_.memory.shrinking()) return;
  const std::uint64_t most = free_memory()[core::kHostDomain];
  world_.memory.bank[core::kHostDomain] += random_.between(std::uint64_t{0}, most);
  world_.memory.shrink_takes = random_.between(Duration::zero(), milliseconds(1500));
  say("the bank has " + std::to_string(world_.memory.bank[core::kHostDomain] / kMiB) + " MiB");
  residency_->memory_changed();
}

// --- what an operator changes

void Scenario::change_settings() {
  const auto at = static_cast<std::size_t>(random_.below(models_.size()));
  const auto model = std::make_shared<catalog::Model>(*models_[at]);
  model->settings.ttl =
      random_.percent(30) ? Duration::zero() : random_.between(seconds(1), seconds(60));
  model->served_context = static_cast<std::uint32_t>(random_.between(1024, 8192));
  for (core::PlacementOption& option : world_.memory.needs[model->name]) {
    for (core::DomainIndex i = 0; i < core::kMaxDomains; ++i) {
      option.bytes[i] =
          option.bytes[i] / 100 * random_.between(std::uint64_t{60}, std::uint64_t{140});
    }
  }
  say("the settings of " + model->name + " are others");
  models_[at] = model;
  ++reached_["settings changed"];
  residency_->catalog_changed();
  residency_->memory_changed();
}

}  // namespace berth::sim
