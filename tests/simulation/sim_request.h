#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/catalog/model.h"
#include "supervisor/residency/request_book.h"
#include "supervisor/residency/residency.h"
#include "supervisor/rpc/worker_client.h"
#include "tests/simulation/random.h"
#include "tests/simulation/sim_clock.h"

namespace berth::sim {

// One client's request: waits, gets a lease, holds it or streams with it, hangs up at any moment,
// and asks why when its stream breaks. Does unpleasant things from within callbacks, by the seed.
// Notes what a client may not see. Simulation thread.
class SimRequest : public residency::ClaimObserver {
 public:
  enum class State : std::uint8_t { kWaiting, kHolding, kStreaming, kExplaining, kDone };

  // What the request needs of the scenario. Outlives it.
  struct Client {
    SimClock& clock;
    residency::Residency& residency;
    Duration queue_timeout;
    // A defect was seen.
    std::function<void(const std::string&)> complain;
    // Something worth counting was reached.
    std::function<void(const std::string&)> reached;
    // Another request for the same model, from within a callback.
    std::function<void(const std::shared_ptr<const catalog::Model>&)> retry;
    // A request got its place.
    std::function<void(const SimRequest&)> served;
    // A request waits or holds no more; called just before.
    std::function<void(const SimRequest&)> leaves;
    bool calm = false;  // no more tricks
    bool one_tenant = true;
  };

  SimRequest(Client& client, std::shared_ptr<const catalog::Model> model, SteadyTime deadline,
             residency::RequestClass request_class, Random random,
             std::shared_ptr<const residency::RequestEntry> entry = nullptr);
  SimRequest(const SimRequest&) = delete;
  SimRequest& operator=(const SimRequest&) = delete;
  ~SimRequest() override;

  void begin();
  // The client goes away, whatever it is doing.
  void hang_up();
  // Lets go of a lease that is only held.
  void release();

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const std::string& model() const { return model_->name; }
  // Empty: an operator's, who is none.
  [[nodiscard]] std::string tenant() const {
    return entry_ == nullptr ? "" : entry_->arrival().tenant;
  }
  [[nodiscard]] SteadyTime since() const { return since_; }
  [[nodiscard]] SteadyTime deadline() const { return deadline_; }
  [[nodiscard]] residency::RequestClass request_class() const { return request_class_; }
  // The instance that it holds a lease on; empty where none.
  [[nodiscard]] std::string held_instance() const;
  // It never waited: there were too many already, or a failure stands.
  [[nodiscard]] bool turned_away() const { return turned_away_; }
  // Looks at the clock: an answer that did not come in time.
  void check();

  [[nodiscard]] const residency::RequestEntry* claimant() const override { return entry_.get(); }
  void on_claim_progress(const residency::ClaimProgress& progress) override;
  void on_lease(residency::Lease lease) override;
  void on_claim_failed(Error error) override;

 private:
  class Sink;

  void answered();
  void stream();
  void on_stream_end(const Status& status);
  void finish();

  Client& client_;
  const std::shared_ptr<const catalog::Model> model_;
  const SteadyTime since_;
  const SteadyTime deadline_;  // the effective one
  const residency::RequestClass request_class_;
  Random random_;
  const std::shared_ptr<const residency::RequestEntry> entry_;

  State state_ = State::kWaiting;
  bool answered_ = false;
  bool turned_away_ = false;
  std::optional<std::uint32_t> last_position_;
  SteadyTime asked_why_{};
  std::unique_ptr<residency::Claim> claim_;
  residency::Lease lease_;
  std::unique_ptr<rpc::GenerateCall> call_;
  std::shared_ptr<Sink> sink_;
};

}  // namespace berth::sim
