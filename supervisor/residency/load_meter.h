#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>

#include "common/uuid.h"
#include "supervisor/catalog/model.h"
#include "supervisor/core/ledger/failure_record.h"
#include "supervisor/core/ledger/provenance.h"
#include "supervisor/residency/memory_access.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::residency {

// A load whose process was launched.
struct MeteredLoad {
  std::shared_ptr<const catalog::Model> model;
  Uuid instance;
  pid_t pid = 0;
  LaunchPlan plan;
  core::Provenance provenance;  // what it depends on, as its launch was prepared
};

// Measures what loads take (M5). Called on the core strand, in the middle of a change: it calls
// nobody back from within. What it is not told of it does not know, and ignores.
class LoadMeter {
 public:
  LoadMeter() = default;
  LoadMeter(const LoadMeter&) = delete;
  LoadMeter& operator=(const LoadMeter&) = delete;
  virtual ~LoadMeter() = default;

  virtual void launched(const MeteredLoad& load) = 0;
  // The instance became ready. Its charge by what is known now; absent: as it was admitted.
  virtual std::optional<MeasuredCharge> loaded(const Uuid& instance,
                                               const rpc::WorkerReady& ready) = 0;
  // Its load failed. Adds to the record what the attempt held, and what was refused to it.
  virtual void failed(const Uuid& instance, core::FailureRecord& record) = 0;
  // Its process is gone.
  virtual void gone(const Uuid& instance) = 0;
};

}  // namespace berth::residency
