#include "supervisor/residency/claim.h"

#include <memory>
#include <utility>

#include "supervisor/core/waiters.h"
#include "supervisor/residency/manager.h"

namespace berth::residency {

TicketClaim::TicketClaim(std::weak_ptr<Manager> manager, core::Ticket ticket)
    : manager_(std::move(manager)), ticket_(ticket) {}

TicketClaim::~TicketClaim() {
  if (const std::shared_ptr<Manager> manager = manager_.lock()) manager->hang_up(ticket_);
}

}  // namespace berth::residency
