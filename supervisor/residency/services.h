#pragma once

#include <functional>
#include <memory>

#include "common/clock.h"
#include "common/event.h"
#include "common/uuid.h"
#include "supervisor/catalog/catalog.h"
#include "supervisor/residency/residency.h"

namespace berth::residency {

// What answering a request needs of the rest of the supervisor. References outlive both.
// `residency` and `catalog` belong to the core strand.
struct Services {
  Clock& clock;
  IdSource& ids;
  EventSink& events;
  Residency& residency;
  // The present snapshot; never null.
  std::function<std::shared_ptr<const catalog::Catalog>()> catalog;
};

}  // namespace berth::residency
