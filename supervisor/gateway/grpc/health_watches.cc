#include "supervisor/gateway/grpc/health_watches.h"

#include <utility>
#include <vector>

namespace berth::gateway {

using grpc::health::v1::HealthCheckResponse;

struct HealthWatches::Shared {
  Shared(residency::Services use, std::function<bool()> is_ready)
      : services(std::move(use)), ready(std::move(is_ready)) {}

  struct Watched {
    std::string service;
    std::optional<std::string> tenant;
    std::weak_ptr<Listener> listener;
  };

  [[nodiscard]] bool has_room(const std::optional<std::string>& tenant) const {
    const auto of = [this](const std::optional<std::string>& whom) {
      const auto at = places.find(whom);
      return at == places.end() ? 0 : at->second;
    };
    if (!tenant) return of(tenant) < kMostOfStrangers;
    return watched.size() - of(std::nullopt) < kMost && of(tenant) < kMostOfTenant;
  }

  [[nodiscard]] Health health_of(const std::string& service) const {
    if (is_the_server(service)) {
      return ready() ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
    }
    const auto model = services.catalog()->find(service);
    if (!model) return HealthCheckResponse::SERVICE_UNKNOWN;
    const std::string state = services.residency.state_of((*model)->name);
    const bool answers = state == "ready" || state == "busy";
    return answers ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
  }

  // Once for any number of changes that come before it runs.
  static void look_soon(const std::shared_ptr<Shared>& shared) {
    {
      const std::lock_guard lock(shared->mutex);
      if (shared->watched.empty() || std::exchange(shared->looking, true)) return;
    }
    shared->services.clock.post([shared] { shared->look(); });
  }
  void look() {
    std::vector<std::pair<std::string, std::shared_ptr<Listener>>> listeners;
    {
      const std::lock_guard lock(mutex);
      looking = false;
      for (const auto& [id, one] : watched) {
        if (auto listener = one.listener.lock()) {
          listeners.emplace_back(one.service, std::move(listener));
        }
      }
    }
    std::map<std::string, Health> found;
    for (const auto& [service, listener] : listeners) {
      auto at = found.find(service);
      if (at == found.end()) at = found.emplace(service, health_of(service)).first;
      listener->on_health(at->second);
    }
  }

  const residency::Services services;
  const std::function<bool()> ready;
  std::mutex mutex;
  bool looking = false;
  std::uint64_t next = 1;
  std::map<std::uint64_t, Watched> watched;
  std::map<std::optional<std::string>, std::size_t> places;  // of one tenant, as in `watched`
};

HealthWatches::HealthWatches(residency::Services services, std::function<bool()> ready)
    : shared_(std::make_shared<Shared>(std::move(services), std::move(ready))) {}

bool HealthWatches::is_the_server(const std::string& service) {
  return service.empty() || service == "berth.v1.Inference" || service == "berth.v1.Admin";
}

HealthWatches::Health HealthWatches::health_of(const std::string& service) const {
  return shared_->health_of(service);
}

Result<std::unique_ptr<HealthWatches::Watch>> HealthWatches::watch(
    std::string service, std::optional<std::string> tenant, std::weak_ptr<Listener> listener) {
  std::unique_ptr<Watch> watch;
  {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->has_room(tenant)) {
      ErrorExtras extras;
      extras.retry_after_seconds = 10;
      return fail(Error(Reason::kQueueFull,
                        "Too many watch the health already: at most " +
                            std::to_string(kMostOfTenant) + " of one tenant, " +
                            std::to_string(kMost) + " in all, and " +
                            std::to_string(kMostOfStrangers) + " without a key. Use Check.",
                        std::move(extras)));
    }
    const std::uint64_t id = shared_->next++;
    ++shared_->places[tenant];
    shared_->watched.emplace(id, Shared::Watched{.service = std::move(service),
                                                 .tenant = std::move(tenant),
                                                 .listener = std::move(listener)});
    watch = std::make_unique<Watch>(shared_, id);
  }
  Shared::look_soon(shared_);
  return watch;
}

void HealthWatches::changed() {
  Shared::look_soon(shared_);
}

HealthWatches::Watch::~Watch() {
  const std::lock_guard lock(shared_->mutex);
  const auto one = shared_->watched.find(id_);
  const auto place = shared_->places.find(one->second.tenant);
  if (--place->second == 0) shared_->places.erase(place);
  shared_->watched.erase(one);
}

}  // namespace berth::gateway
