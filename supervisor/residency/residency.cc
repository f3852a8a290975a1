#include "supervisor/residency/residency.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/core/waiters.h"
#include "supervisor/residency/claim.h"
#include "supervisor/residency/manager.h"

namespace berth::residency {

// A manager of its own life, because answers and leases refer to it weakly.
class Residency::Impl {
 public:
  Impl(Environment environment, const Limits& limits)
      : manager(std::make_shared<Manager>(std::move(environment), limits)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { manager->detach(); }

  const std::shared_ptr<Manager> manager;
};

Residency::Residency(Environment environment, const Limits& limits)
    : impl_(std::make_unique<Impl>(std::move(environment), limits)) {}

Residency::~Residency() = default;

std::unique_ptr<Claim> Residency::acquire(const std::shared_ptr<const catalog::Model>& model,
                                          RequestClass request_class, SteadyTime deadline,
                                          ClaimObserver& observer) {
  const std::shared_ptr<Manager>& manager = impl_->manager;
  const core::Ticket ticket = manager->acquire(model, request_class, deadline, observer);
  return std::make_unique<TicketClaim>(manager, ticket);
}

void Residency::unload(const std::string& model, bool force,
                       std::function<void(Result<UnloadOutcome>)> done) {
  impl_->manager->unload(model, force, std::move(done));
}

Status Residency::pin(const std::shared_ptr<const catalog::Model>& model) {
  return impl_->manager->pin(model);
}

bool Residency::unpin(const std::string& model) {
  return impl_->manager->unpin(model);
}

bool Residency::pinned(const std::string& model) const {
  return impl_->manager->pinned(model);
}

bool Residency::pinned_by_configuration(const std::string& model) const {
  return impl_->manager->pinned_by_configuration(model);
}

std::vector<std::string> Residency::pin_problems() const {
  return impl_->manager->pin_problems();
}

void Residency::check(const std::shared_ptr<const catalog::Model>& model,
                      std::function<void(Status)> done) {
  impl_->manager->check(model, std::move(done));
}

void Residency::recharge(const Uuid& instance, const MeasuredCharge& charge) {
  impl_->manager->room().recharge(instance, charge);
}

void Residency::use_waits(const Limits& limits) {
  impl_->manager->use_waits(limits);
}

void Residency::memory_changed() {
  impl_->manager->memory_changed();
}

core::Snapshot Residency::memory_now() const {
  return impl_->manager->room().snapshot();
}

PlanReport Residency::plan(const catalog::Model& model, bool anew) const {
  return impl_->manager->room().plan(model, anew);
}

std::vector<RoomWait> Residency::room_waits() const {
  return impl_->manager->room().waits();
}

const RoomCounters& Residency::room_counters() const {
  return impl_->manager->room().counters();
}

void Residency::explain_break(const std::string& instance_id, std::function<void(Error)> done) {
  impl_->manager->explain_break(instance_id, std::move(done));
}

void Residency::restore_failures(std::function<void()> done) {
  impl_->manager->restore_failures(std::move(done));
}

void Residency::catalog_changed() {
  impl_->manager->catalog_changed();
}

std::optional<core::FailureRecord> Residency::retry(const std::string& model,
                                                    const std::string& who) {
  return impl_->manager->retry(model, who);
}

std::vector<core::FailureRecord> Residency::standing_failures() const {
  return impl_->manager->standing_failures();
}

std::vector<InstanceSnapshot> Residency::instances() const {
  return impl_->manager->instances();
}

std::vector<QueuedWaiter> Residency::waiters() const {
  return impl_->manager->waiters();
}

std::string Residency::state_of(const std::string& model) const {
  return impl_->manager->state_of(model);
}

ModelNow Residency::now_of(const catalog::Model& model) const {
  return impl_->manager->now_of(model);
}

void Residency::shutdown(Duration drain, std::function<void()> done) {
  impl_->manager->shutdown(drain, std::move(done));
}

}  // namespace berth::residency
