#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/event.h"
#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/core/ledger/failure_record.h"
#include "supervisor/core/memory/domain_table.h"
#include "supervisor/core/memory/measured_load.h"
#include "supervisor/residency/load_meter.h"
#include "supervisor/store/store.h"

namespace berth {

// What loads took in every memory domain, measured and kept (M5): libllama's own figures once a
// model is ready, the most that its process was seen to have, and what loads that failed showed to
// be needed (L21). Later predictions use it, and the charge of a running instance follows it.
// A stored record that says what cannot be true on this machine is not used, and an event says so.
// Core strand; lives longer than the residency. Nothing fails: where the store cannot be read an
// event says so, and it is asked again; until then predictions are estimates.
class MeasuredLoads final : public residency::LoadMeter {
 public:
  static constexpr Duration kReadAgain = std::chrono::seconds(30);
  // A process's maximum is written when it has grown by so much, and when the process is gone.
  static constexpr std::uint64_t kWriteStep = 16ULL << 20U;

  struct Parts {
    Clock& clock;
    store::Store& store;
    EventSink& events;
    // The present domains.
    std::function<const core::DomainTable&()> table;
    // Of the machine, with what devices have of it of their own; bytes. May be empty.
    std::function<std::uint64_t()> main_memory{};
    // The charge of a running instance is another one now, as Residency::recharge(). May be empty.
    std::function<void(const Uuid& instance, const residency::MeasuredCharge& charge)> on_charge{};
  };

  explicit MeasuredLoads(Parts parts) : parts_(std::move(parts)) {}
  MeasuredLoads(const MeasuredLoads&) = delete;
  MeasuredLoads& operator=(const MeasuredLoads&) = delete;
  ~MeasuredLoads() override;

  // Reads what is kept; `done` is called once it was tried. Once, before the first load.
  void begin(std::function<void()> done = {});

  // By what a load is measured that depends on this, has that window (tokens; 0: as in the
  // provenance) and is placed there.
  [[nodiscard]] std::string key(core::Provenance provenance, std::uint32_t window,
                                const core::Placement& placement) const;
  // Null: nothing was measured under it. Valid until the next call that changes something.
  [[nodiscard]] const core::MeasuredLoad* find(const std::string& key);

  // A worker's process has so much of a domain; of the host without pages of files. Of a command
  // model the whole tree of its process, by the pid of the child that berthd started. Others are
  // ignored.
  void seen(pid_t pid, core::DomainIndex domain, std::uint64_t bytes);

  // predicted / actual of the last load of each model that became ready (M5).
  [[nodiscard]] std::vector<core::LoadRatio> ratios();
  // Of the last load of that model that became ready; null: there is none.
  [[nodiscard]] const store::MeasuredRecord* last_of(const std::string& model);

  void launched(const residency::MeteredLoad& load) override;
  std::optional<residency::MeasuredCharge> loaded(const Uuid& instance,
                                                  const rpc::WorkerReady& ready) override;
  void failed(const Uuid& instance, core::FailureRecord& record) override;
  void gone(const Uuid& instance) override;

 private:
  // A process that is measured.
  struct Running {
    std::string key;
    std::string model;
    pid_t pid = 0;
    residency::LaunchPlan plan;
    bool is_command = false;
    bool ready = false;
    bool unwritten = false;
    core::DomainBytes most;     // that this process was seen to have
    core::DomainBytes written;  // of that, when it was last written
    std::optional<residency::MeasuredCharge> charge;
  };

  void ask();
  void on_read(Result<store::MeasuredRecords> read);
  store::MeasuredRecord& record_of(const Running& running);
  void keep(store::MeasuredRecord& record);
  [[nodiscard]] core::DomainIndex domain_of(const std::string& device) const;
  [[nodiscard]] residency::MeasuredCharge charge_of(const Running& running) const;
  [[nodiscard]] std::vector<core::MeasuredDomain> domains_of(const rpc::WorkerReady& ready) const;
  void make_room();
  // The record of that key as it may be used; null: there is none.
  store::MeasuredRecord* trusted(const std::string& key);
  void forget(const std::string& key);

  const Parts parts_;
  std::map<std::string, store::MeasuredRecord> records_;  // by key; kMeasuredKept at most
  std::map<std::string, std::string> last_;               // keys by model
  std::set<std::string> untried_;  // keys whose records are from the store, and were not judged yet
  std::map<Uuid, Running> running_;
  std::function<void()> read_;  // until it was called
  bool told_ = false;           // that the store cannot be read
  Timer again_;
  // The store's answer may come after its end.
  const std::shared_ptr<MeasuredLoads*> self_ = std::make_shared<MeasuredLoads*>(this);
};

}  // namespace berth
