#pragma once

#include <memory>

#include "supervisor/core/waiters.h"
#include "supervisor/residency/residency.h"

namespace berth::residency {

class Manager;

// What acquire() gives: dropping it hangs up. May outlive the residency.
class TicketClaim : public Claim {
 public:
  TicketClaim(std::weak_ptr<Manager> manager, core::Ticket ticket);
  TicketClaim(const TicketClaim&) = delete;
  TicketClaim& operator=(const TicketClaim&) = delete;
  ~TicketClaim() override;

 private:
  const std::weak_ptr<Manager> manager_;
  const core::Ticket ticket_;
};

}  // namespace berth::residency
