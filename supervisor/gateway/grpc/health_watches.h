#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/result.h"
#include "grpc/health/v1/health.pb.h"
#include "supervisor/residency/services.h"

namespace berth::gateway {

// The health of the server and its models, and who watches it: a bounded number, for all of whom it
// is looked up once after any number of changes. Thread-safe; may go before its watches.
class HealthWatches {
  struct Shared;

 public:
  using Health = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // Who watch at once: callers who are known, in all and of one tenant, and all others together.
  static constexpr std::size_t kMost = 128;
  static constexpr std::size_t kMostOfTenant = 32;
  static constexpr std::size_t kMostOfStrangers = 16;

  class Listener {
   public:
    Listener() = default;
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    virtual ~Listener() = default;
    // As it is now, whether it has changed or not. Core strand, under no lock.
    virtual void on_health(Health health) = 0;
  };

  // The place of one who watches; dropping it frees the place. What is looked up already may still
  // be told.
  class Watch {
   public:
    Watch(std::shared_ptr<Shared> shared, std::uint64_t id) : shared_(std::move(shared)), id_(id) {}
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch();

   private:
    const std::shared_ptr<Shared> shared_;
    const std::uint64_t id_;
  };

  // `ready`: whether the server takes requests; any thread. Both are used on the core strand as
  // long as anybody watches.
  HealthWatches(residency::Services services, std::function<bool()> ready);

  // Whether it stands for the server: the services that it offers do, too.
  static bool is_the_server(const std::string& service);
  // Core strand.
  [[nodiscard]] Health health_of(const std::string& service) const;

  // Tells the health at once and after each change. `tenant`: absent, nobody knows who it is.
  // Errors: kQueueFull.
  Result<std::unique_ptr<Watch>> watch(std::string service, std::optional<std::string> tenant,
                                       std::weak_ptr<Listener> listener);
  // It may be another one.
  void changed();

 private:
  const std::shared_ptr<Shared> shared_;
};

}  // namespace berth::gateway
