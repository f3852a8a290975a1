#pragma once

#include <functional>
#include <memory>

#include "common/clock.h"
#include "common/event.h"
#include "common/uuid.h"
#include "supervisor/catalog/catalog.h"
#include "supervisor/core/waiting_bytes.h"
#include "supervisor/residency/request_book.h"
#include "supervisor/residency/residency.h"

namespace berth::residency {

// What answering a request needs of the rest of the supervisor. References outlive both.
// `residency` and `requests` belong to the core strand.
struct Services {
  Clock& clock;
  IdSource& ids;
  EventSink& events;
  Residency& residency;
  // The present snapshot; never null. Any thread.
  std::function<std::shared_ptr<const catalog::Catalog>()> catalog;
  // Whoever works on a request keeps its line there.
  RequestBook& requests;
  // What large requests may keep in memory until they are sent. Core strand; never null.
  std::shared_ptr<core::WaitingBytes> waiting = std::make_shared<core::WaitingBytes>();
  // Runs on the pool what would keep the core strand for long. Any thread. Empty: it is run where
  // it comes up.
  std::function<void(std::function<void()>)> run_blocking{};
};

}  // namespace berth::residency
