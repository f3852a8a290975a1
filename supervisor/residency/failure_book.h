#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/event.h"
#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/catalog/model.h"
#include "supervisor/core/ledger/load_ledger.h"
#include "supervisor/residency/load_basis.h"
#include "supervisor/residency/residency.h"
#include "supervisor/store/store.h"

namespace berth::residency {

// The ledger of failed loads with its shell: what is decided goes to the store and becomes events.
// Core strand; lives as long as the residency. Nothing fails: a store that keeps nothing costs only
// what a restart would have known.
class FailureBook {
 public:
  static constexpr Duration kRestoreWait = std::chrono::seconds(5);
  static constexpr Duration kRestoreSoon = std::chrono::milliseconds(250);
  static constexpr Duration kRestoreLater = std::chrono::seconds(30);

  // The memory domains by what is charged there, without that instance; with what a load of the
  // model would be charged now, if it is not null. Takes well under 1 ms.
  using Charged =
      std::function<std::vector<core::DomainNow>(const catalog::Model* model, const Uuid& without)>;

  // The environment outlives it.
  FailureBook(const Environment& environment, Charged charged)
      : environment_(environment), charged_(std::move(charged)) {}
  FailureBook(const FailureBook&) = delete;
  FailureBook& operator=(const FailureBook&) = delete;
  ~FailureBook() = default;

  // Reads what the store knows of the standing failures; `done` is called once, when that is judged
  // or could not be read within kRestoreWait. Then no earlier failure stands, an event says so, and
  // the store is asked again every kRestoreLater until it works: what a restart drops (L21) and
  // what a load has overtaken is then lifted in its rows, the rest stands. Once, before any load.
  void restore(std::function<void()> done);

  // The failure that stands against the model; null: none. One for want of memory is judged by the
  // memory as it is at this moment (L21). That reads /proc/meminfo on the core strand, which takes
  // 15 to 50 us of the 1 ms that a refusal may take (L22); a sample of before could refuse what
  // fits by now.
  const core::FailureRecord* standing(const std::string& model);
  [[nodiscard]] std::vector<core::FailureRecord> all_standing() const;

  void load_started(const catalog::Model& model, const Uuid& instance);
  // The launch of that load was prepared, so that what it executes is known.
  LoadBasis load_prepared(const catalog::Model& model, const Uuid& instance);
  void loaded(const std::string& model, const Uuid& instance);
  void load_interrupted(const std::string& model, const Uuid& instance);
  // Completes the record with the memory as it is and keeps it. Whether it stands.
  bool load_failed(core::FailureRecord record);
  // By hand; what was lifted, if anything stood.
  std::optional<core::FailureRecord> retry(const std::string& model, const std::string& who);
  // L23: judges what stands. The models whose failure does not any more.
  std::vector<std::string> catalog_changed();

 private:
  void ask_store();
  void on_read(Result<std::vector<core::FailureRecord>> records);
  void adopt(std::vector<core::FailureRecord> records);
  void restore_without(const std::string& cause);
  // Judges what stands against the model by what it depends on now; whether that lifted it.
  bool judge(const std::string& model);
  void lift(const core::LoadLedger::Lifted& lifted);
  [[nodiscard]] std::optional<core::Provenance> provenance_of(const std::string& model) const;
  // What a load of it depends on (L19), the budgets included.
  [[nodiscard]] core::Provenance depends(const catalog::Model& model) const;
  [[nodiscard]] std::vector<core::DomainNow> memory(const catalog::Model* model,
                                                    const Uuid& without = {}) const;

  const Environment& environment_;
  const Charged charged_;
  core::LoadLedger ledger_;
  std::map<std::string, std::vector<core::DomainNow>> memory_before_;  // of the current load
  // By model: what its last load that became ready depended on, and what its current one does.
  std::map<std::string, std::string> proven_;
  std::map<std::string, std::pair<Uuid, std::string>> basis_;

  std::function<void()> restored_;  // until it was called
  bool restored_without_ = false;   // and that was told
  std::string restore_problem_ = "the database does not answer.";
  Timer restore_deadline_;
  Timer restore_again_;
  // The store's answer may come after its end.
  const std::shared_ptr<FailureBook*> self_ = std::make_shared<FailureBook*>(this);
};

}  // namespace berth::residency
