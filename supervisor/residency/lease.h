#pragma once

#include <memory>
#include <string>

#include "common/clock.h"
#include "common/uuid.h"
#include "supervisor/residency/residency.h"
#include "supervisor/residency/worker_handle.h"

namespace berth::residency {

// Where leases come back to. Core strand.
class LeaseOffice {
 public:
  LeaseOffice() = default;
  LeaseOffice(const LeaseOffice&) = delete;
  LeaseOffice& operator=(const LeaseOffice&) = delete;
  virtual ~LeaseOffice() = default;

  virtual void lease_returned(const std::string& model, const Uuid& instance, bool client) = 0;
};

// One taken place. Its end, on whatever thread, is posted to the core strand together with its
// share of the connection, which must die there.
class Lease::Impl {
 public:
  struct Place {
    std::string model;
    Uuid instance;
    bool client = false;  // a client's work (M15)
    std::uint32_t window = 0;
    std::uint32_t longest_token_bytes = 0;
    SteadyTime load_began{};
    SteadyTime ready_since{};
  };

  Impl(Clock& clock, std::weak_ptr<LeaseOffice> office, std::shared_ptr<WorkerHandle> worker,
       Place place);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl();

  [[nodiscard]] WorkerHandle& worker() const { return *worker_; }
  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] const std::string& instance_id() const { return instance_id_; }

 private:
  Clock& clock_;
  std::weak_ptr<LeaseOffice> office_;
  std::shared_ptr<WorkerHandle> worker_;
  const Place place_;
  const std::string instance_id_;
};

}  // namespace berth::residency
