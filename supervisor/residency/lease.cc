#include "supervisor/residency/lease.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/clock.h"
#include "supervisor/residency/residency.h"
#include "supervisor/residency/worker_handle.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::residency {

Lease::Impl::Impl(Clock& clock, std::weak_ptr<LeaseOffice> office,
                  std::shared_ptr<WorkerHandle> worker, Place place)
    : clock_(clock),
      office_(std::move(office)),
      worker_(std::move(worker)),
      place_(std::move(place)),
      instance_id_(place_.instance.to_string()) {}

Lease::Impl::~Impl() {
  clock_.post([office = std::move(office_), worker = std::move(worker_), place = place_] {
    if (const std::shared_ptr<LeaseOffice> there = office.lock()) {
      there->lease_returned(place.model, place.instance, place.client);
    }
  });
}

Lease::Lease() = default;
Lease::Lease(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Lease::Lease(Lease&&) noexcept = default;
Lease& Lease::operator=(Lease&&) noexcept = default;
Lease::~Lease() = default;

rpc::WorkerClient& Lease::worker() const {
  return impl_->worker();
}
const std::string& Lease::instance_id() const {
  return impl_->instance_id();
}
std::uint32_t Lease::longest_token_bytes() const {
  return impl_->place().longest_token_bytes;
}
std::uint32_t Lease::window() const {
  return impl_->place().window;
}
Duration Lease::load_since(SteadyTime since) const {
  const SteadyTime began = std::max(impl_->place().load_began, since);
  return std::max(impl_->place().ready_since - began, Duration::zero());
}

}  // namespace berth::residency
