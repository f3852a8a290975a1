#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/event.h"
#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/catalog/model.h"
#include "supervisor/core/ledger/load_ledger.h"
#include "supervisor/residency/residency.h"
#include "supervisor/store/store.h"

namespace berth::residency {

// The ledger of failed loads with its shell: what is decided goes to the store and becomes events.
// Core strand; lives as long as the residency. Nothing fails: a store that keeps nothing costs only
// what a restart would have known.
class FailureBook {
 public:
  // The environment outlives it.
  explicit FailureBook(const Environment& environment) : environment_(environment) {}
  FailureBook(const FailureBook&) = delete;
  FailureBook& operator=(const FailureBook&) = delete;
  ~FailureBook() = default;

  // Gives the ledger what the store knows of the standing failures. Before any load.
  void restore(Result<std::vector<core::FailureRecord>> records);

  // The failure that stands against the model; null: none. One of memory is looked at anew, whether
  // there is enough by now (L21).
  const core::FailureRecord* standing(const std::string& model);
  [[nodiscard]] std::vector<core::FailureRecord> all_standing() const;

  void load_started(const catalog::Model& model, const Uuid& instance);
  void loaded(const std::string& model, const Uuid& instance);
  // Completes the record with the memory as it is and keeps it. Whether it stands.
  bool load_failed(core::FailureRecord record);
  // By hand; what was lifted, if anything stood.
  std::optional<core::FailureRecord> retry(const std::string& model, const std::string& who);
  // L23: judges what stands. The models whose failure does not any more.
  std::vector<std::string> catalog_changed();

 private:
  void lift(const core::LoadLedger::Lifted& lifted, core::FailureClass failure_class);
  [[nodiscard]] std::optional<core::Provenance> provenance_of(const std::string& model) const;
  [[nodiscard]] std::vector<core::DomainNow> memory() const;

  const Environment& environment_;
  core::LoadLedger ledger_;
  std::map<std::string, std::vector<core::DomainNow>> memory_before_;  // of the current load
};

}  // namespace berth::residency
