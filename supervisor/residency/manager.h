#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/catalog/model.h"
#include "supervisor/core/backoff.h"
#include "supervisor/core/ledger/failure_record.h"
#include "supervisor/core/ledger/verdict.h"
#include "supervisor/core/queue_pace.h"
#include "supervisor/core/waiters.h"
#include "supervisor/residency/failure_book.h"
#include "supervisor/residency/instance.h"
#include "supervisor/residency/lease.h"
#include "supervisor/residency/post_mortem.h"
#include "supervisor/residency/recent_ends.h"
#include "supervisor/residency/residency.h"
#include "supervisor/residency/room.h"
#include "supervisor/residency/waiter.h"

namespace berth::residency {

// One model's place in the residency: who waits for it, the instance that serves it or will, and
// what stands against a new one. One per model that was ever asked for.
struct Berth {
  Berth(std::shared_ptr<const catalog::Model> for_model, std::uint32_t limit,
        core::WaitingTotal& total)
      : model(std::move(for_model)), queue(limit, total) {}

  std::shared_ptr<const catalog::Model> model;  // as the last request knew it
  core::WaiterQueue queue;
  Instance* current = nullptr;  // starting to closing; the others of the model are on their way out
  core::RestartBackoff back_off;
  Timer back_off_timer;
  bool report_posted = false;
  bool serving = false;
  core::QueuePace pace;
  std::optional<Duration> last_load;  // what its last load that became ready took
  // Since when a client wants it: of those who left unserved, the oldest (M8); and when the last of
  // them left. Counts on for retry_grace.
  std::optional<SteadyTime> carried;
  SteadyTime client_left{};
  // How old the demand is that its last instance closed for: whoever waits comes after that, until
  // it is started or serves again (M12).
  std::optional<SteadyTime> behind;
  bool had_client = false;      // `current`: one waited for it, or used it
  bool torn_down = false;       // its last load was, abandoned: not the next one, too (L5)
  SteadyTime positions_told{};  // when all who wait were last told their place; on what serves
  std::vector<core::Ticket> newcomers;  // who have been told nothing yet
  Timer positions_timer;                // until they are told again
};

// What Residency is made of. Core strand; every answer to a client is posted, so that no client
// code runs in the middle of a change and anything may be called from within an answer.
class Manager : public std::enable_shared_from_this<Manager>,
                public LeaseOffice,
                public InstanceHost,
                private RoomHost {
 public:
  Manager(Environment environment, const Limits& limits);
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;
  ~Manager() override;

  core::Ticket acquire(const std::shared_ptr<const catalog::Model>& model,
                       RequestClass request_class, SteadyTime deadline, ClaimObserver& observer);
  // The claim of that ticket was dropped.
  void hang_up(core::Ticket ticket);
  void unload(const std::string& model, bool force,
              std::function<void(Result<UnloadOutcome>)> done);
  void explain_break(const std::string& instance_id, std::function<void(Error)> done);
  // As those of Residency.
  void restore_failures(std::function<void()> done);
  void catalog_changed();
  void memory_changed();
  std::optional<core::FailureRecord> retry(const std::string& model, const std::string& who);
  [[nodiscard]] std::vector<core::FailureRecord> standing_failures() const {
    return failures_.all_standing();
  }
  [[nodiscard]] std::vector<InstanceSnapshot> instances() const;
  [[nodiscard]] std::vector<QueuedWaiter> waiters() const;
  [[nodiscard]] std::string state_of(const std::string& model) const;
  [[nodiscard]] ModelNow now_of(const catalog::Model& model) const;
  void shutdown(Duration drain, std::function<void()> done);
  [[nodiscard]] Status pin(const std::shared_ptr<const catalog::Model>& model);
  bool unpin(const std::string& model);
  [[nodiscard]] bool pinned_by_configuration(const std::string& model) const {
    return configured_pins_.contains(model);
  }
  [[nodiscard]] std::vector<std::string> pin_problems() const;
  void check(const std::shared_ptr<const catalog::Model>& model, std::function<void(Status)> done);
  [[nodiscard]] bool pinned(const std::string& model) const;
  [[nodiscard]] Room& room() { return room_; }
  void use_waits(const Limits& limits);
  // No client is called any more.
  void detach() { detached_ = true; }

  void lease_returned(const std::string& model, const Uuid& instance, bool client) override;

  LoadBasis on_instance_prepared(Instance& instance) override;
  void on_instance_ready(Instance& instance) override;
  void on_instance_unavailable(Instance& instance) override;
  void on_instance_progress(Instance& instance) override;
  void on_load_failed(Instance& instance, const Error& error) override;
  void on_load_interrupted(Instance& instance) override;
  void on_instance_settled(Instance& instance) override;

 private:
  using Answer = std::variant<Lease, Error>;

  Berth& berth_of(const std::shared_ptr<const catalog::Model>& model);
  [[nodiscard]] std::shared_ptr<Instance> find(const std::string& model, const Uuid& id) const;
  // A load of it has failed, and why is not known to the end: who comes now waits for that instead
  // of starting the same again (L5, L22), unless an operator wants another try.
  [[nodiscard]] bool verdict_pending(const std::string& model) const;
  [[nodiscard]] bool operator_waits(const Berth& berth) const;
  [[nodiscard]] bool is_operators(core::Ticket ticket) const;
  // The model's instance that is on its way out (closing to stopping); the newest.
  [[nodiscard]] Instance* leaving(const std::string& model) const;
  // What stands against the request at once.
  [[nodiscard]] std::optional<Error> refusal(const Waiter& waiter, const catalog::Model& model);
  [[nodiscard]] std::optional<Error> enqueue(Berth& berth, const Waiter& waiter);
  // One who waited is gone without a place.
  void left_unserved(Berth& berth, RequestClass request_class, SteadyTime since);
  void answer(core::Ticket ticket, Answer answer);
  void deliver(core::Ticket ticket);
  void on_deadline(core::Ticket ticket);
  void refuse_waiters(Berth& berth, const Error& error);
  // A failure stands now: clients need not wait; operators want another try.
  void refuse_clients(Berth& berth, const Error& error);
  // A failure was lifted.
  void forget_deaths(const std::string& model);
  // An instance that was ready is gone.
  void on_ready_end(Berth& berth, Instance& instance);
  // It died by itself, which may be a failure of the model (L9).
  void look_into_death(const Berth& berth, const Instance& instance);
  void on_death_known(core::FailureRecord record, core::DeathEvidence evidence,
                      PostMortem::Found found);

  void start_if_wanted(Berth& berth);
  // Nothing but room stands against another try; else it is looked at again by itself.
  [[nodiscard]] bool is_due(Berth& berth);
  void start(Berth& berth, const LaunchPlan& plan);
  // A model that a job loaded goes when the job ends (M15).
  void end_job_load(Berth& berth);
  void serve(Berth& berth);
  Lease grant(Instance& instance, const Waiter& waiter);
  void note_served(const Instance& instance, const Waiter& waiter);
  // Gives those who have work their part of the cores.
  void share_cores();
  void report_soon(Berth& berth);
  void report(const std::string& model);
  [[nodiscard]] bool tells_only_new(Berth& berth);
  // How long until it is loaded; absent: nothing is known of that.
  [[nodiscard]] std::optional<Duration> load_wait(const Berth& berth,
                                                  const Room::Waiting* room) const;
  // Of one who waits in that place; absent: in none any more.
  [[nodiscard]] ClaimProgress progress_of(const Berth& berth,
                                          std::optional<std::uint32_t> position) const;
  void finish_shutdown();

  // The model as the catalogue has it now; null: it has none of that name any more. Without a
  // catalogue it stays as it is.
  [[nodiscard]] std::shared_ptr<const catalog::Model> present(
      const std::shared_ptr<const catalog::Model>& model) const;
  // For who waits: its file may be another one than when it was asked for, and take more; or none
  // at all. False: then they were answered.
  bool renew(Berth& berth);
  // One that is pinned, as it is now; null: it is not resident, and cannot be loaded.
  [[nodiscard]] std::shared_ptr<const catalog::Model> counted_pin(
      const std::shared_ptr<const catalog::Model>& pinned) const;
  // The others that are pinned and count.
  [[nodiscard]] std::vector<std::shared_ptr<const catalog::Model>> pinned_beside(
      const std::string& model) const;
  void take_configured_pins();

  std::vector<Demand> demands() override;
  void describe(const Uuid& instance, core::Entry& entry) const override;
  void admit(const Demand& demand, const LaunchPlan& plan) override;
  void evict(const core::Victim& victim) override;
  // Once more: it ends sooner, where swap_drain is shorter by now.
  void close(const Uuid& instance) override;
  // For another one's room.
  [[nodiscard]] std::vector<std::shared_ptr<Instance>> closing() const;
  void closes_for(const Uuid& instance, SteadyTime since) override;
  bool reopen(const Uuid& instance) override;
  void refuse_demand(const std::string& model, const Error& error) override;
  void on_room_wait(const std::string& model) override;
  [[nodiscard]] bool others_pinned(const std::string& model) const override;
  [[nodiscard]] std::optional<SteadyTime> carried(const std::string& model) const override;

  Environment environment_;
  Limits limits_;
  core::WaitingTotal total_;
  bool detached_ = false;
  core::Ticket next_ticket_ = 1;
  std::unordered_map<core::Ticket, Waiter> waiters_;
  std::map<std::string, Berth> berths_;
  std::map<Uuid, std::shared_ptr<Instance>> instances_;
  RecentEnds recent_ends_;
  FailureBook failures_;
  PostMortem post_mortem_;
  Room room_;
  std::vector<std::pair<std::string, std::uint64_t>> budgets_;  // as failures were last judged by
  std::map<std::string, std::shared_ptr<const catalog::Model>> pins_;  // by hand
  std::map<std::string, std::shared_ptr<const catalog::Model>> configured_pins_;

  std::optional<SteadyTime> drain_until_;  // since shutdown() was called
  std::vector<std::function<void()>> shutdown_done_;
};

}  // namespace berth::residency
