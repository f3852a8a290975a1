#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "supervisor/catalog/catalog.h"
#include "supervisor/residency/request_book.h"
#include "supervisor/residency/residency.h"
#include "supervisor/residency/services.h"
#include "tests/simulation/sim_world.h"

namespace berth::gateway {

// What requests need of the supervisor, in simulated time, with these models.
struct GatewayWorld {
  explicit GatewayWorld(std::vector<std::shared_ptr<const catalog::Model>> models)
      : catalog_(std::make_shared<const catalog::Catalog>(std::move(models))) {}

  sim::SimWorld world_;
  residency::Residency residency_{world_.environment()};
  std::shared_ptr<const catalog::Catalog> catalog_;
  residency::RequestBook requests_{world_.clock, world_.events};
  const residency::Services services_{
      world_.clock, world_.ids, world_.events, residency_, [this] { return catalog_; }, requests_};
};

}  // namespace berth::gateway
