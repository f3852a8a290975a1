#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/event.h"
#include "common/result.h"

namespace berth::residency {

// How far a request is; the last four are ends.
enum class RequestStage : std::uint8_t {
  kWaiting,     // for a place, or for a load to begin
  kLoading,     // for the load that goes on
  kPrefill,     // it has a place, and no token came yet
  kGenerating,  // a token came
  kFinished,
  kFailed,   // after work had begun
  kRefused,  // before
  kCancelled,
};
// "waiting", "loading", …
std::string_view request_stage_name(RequestStage stage);

// A request as its door knows it.
struct RequestArrival {
  std::string id;        // the client may have chosen it: not always the only one of that name
  std::string model;     // the catalogue's name; empty: there is no such model
  std::string tenant;    // core::Caller::tenant; empty: of a refusal before anybody was known
  std::string protocol;  // grpc | http
  SteadyTime deadline{};
  // Ends it, on the core strand; does nothing once it has ended. Must not own what owns the entry.
  std::function<void()> cancel;
};

// What an answer cost, tokens.
struct RequestUsage {
  std::uint32_t prompt = 0;
  std::uint32_t cached = 0;
  std::uint32_t completion = 0;
};

// One request, for people: a copy.
struct RequestRecord {
  std::string id;
  std::string model;
  std::string tenant;
  std::string protocol;
  std::string instance_id;  // empty: it got no place
  RequestStage stage = RequestStage::kWaiting;
  std::string reason;       // of one that failed or was refused: a name of the error table
  std::uint64_t alike = 1;  // requests that it stands for: more than one only of those refused in
                            // a flood, of which nothing but the reason is known
  WallTime arrived{};
  std::optional<WallTime> admitted;
  std::optional<WallTime> first_token;
  std::optional<WallTime> ended;
  WallTime deadline{};
  std::uint32_t prefill_done = 0;   // tokens
  std::uint32_t prefill_total = 0;  // tokens
  std::uint32_t tokens = 0;         // generated so far
  std::optional<RequestUsage> usage;
  // By the steady clock, from its arrival on.
  std::optional<Duration> to_place;
  std::optional<Duration> to_first_token;
  std::optional<Duration> took;
};

class RequestBook;

// One request's line in the book. Whoever works on the request holds it and says what happens; one
// that is dropped without an end stays listed, so end() it. Core strand, but for the counters.
class RequestEntry {
 public:
  RequestEntry(RequestBook& book, RequestArrival arrival);
  RequestEntry(const RequestEntry&) = delete;
  RequestEntry& operator=(const RequestEntry&) = delete;
  ~RequestEntry() = default;

  // It waits: for a load that goes on, or for a place.
  void waiting(bool loading);
  // It got a place on that instance.
  void admitted(const std::string& instance_id);
  // It is over. Only the first call counts. `reason`: of kFailed and kRefused.
  void end(RequestStage how, std::optional<Reason> reason = std::nullopt,
           std::optional<RequestUsage> usage = std::nullopt);

  // Any thread.
  void prefill(std::uint32_t done, std::uint32_t total) {
    prefill_done_.store(done, std::memory_order_relaxed);
    prefill_total_.store(total, std::memory_order_relaxed);
  }
  // The answer began, however many tokens that is. One thread at a time.
  void first_token();
  // Tokens came. One thread at a time.
  void tokens(std::uint32_t count);

  [[nodiscard]] RequestRecord record() const;
  [[nodiscard]] const RequestArrival& arrival() const { return arrival_; }

 private:
  friend class RequestBook;

  RequestBook& book_;
  RequestArrival arrival_;
  const SteadyTime arrived_;
  const WallTime arrived_wall_;
  RequestStage stage_ = RequestStage::kWaiting;
  std::string instance_id_;
  std::optional<SteadyTime> admitted_;
  std::optional<SteadyTime> ended_;
  std::string reason_;
  std::optional<RequestUsage> usage_;
  std::optional<std::list<std::shared_ptr<RequestEntry>>::iterator> place_;

  std::atomic<std::uint32_t> prefill_done_{0};
  std::atomic<std::uint32_t> prefill_total_{0};
  std::atomic<std::uint32_t> tokens_{0};
  std::atomic<std::int64_t> first_token_ns_{0};  // since arrived_, at least 1; 0: none came
};

// Every request that waits or runs, and the last that ended, for /api/state, `cancel` and the
// metrics. Core strand; outlives the requests. Bounded: what waits is bounded by the residency, and
// beyond kMostLive requests are served without being listed.
class RequestBook {
 public:
  static constexpr std::size_t kMostLive = 16'384;
  // Of those that ended, of each tenant; and how many tenants' are kept, those of the last ends.
  static constexpr std::size_t kEndedKept = 100;
  static constexpr std::size_t kRefusedKept = 20;
  static constexpr std::size_t kTenantsKept = 64;
  // Events of refusals within one second; a client that is refused asks again at once, and could
  // push every other event out of what is kept.
  static constexpr std::uint32_t kRefusalsTold = 50;
  static constexpr std::uint32_t kRefusalsToldOfTenant = 10;
  // Refusals that wait for the core strand; of those beyond it only the reasons are counted.
  static constexpr std::size_t kRefusalsWaiting = 256;

  using OnEnd = std::function<void(const RequestRecord&)>;

  RequestBook(Clock& clock, EventSink& events) : clock_(clock), events_(events) {}
  RequestBook(const RequestBook&) = delete;
  RequestBook& operator=(const RequestBook&) = delete;
  ~RequestBook() = default;

  // A request came. Never null.
  [[nodiscard]] std::shared_ptr<RequestEntry> arrive(RequestArrival arrival);

  // A request was refused at the door, before it could wait: its line and its event. `said`: the
  // model as the client named it. What nobody known asked (no tenant, or kUnauthenticated) is
  // counted and told to admins, and not listed. However many come, one task at a time waits for
  // them on the core strand. Any thread.
  void refused(RequestArrival arrival, std::string said, const Error& error);
  // The event of a refusal, unless too many came within this second: those are counted and told
  // together.
  void tell_refusal(events::RequestRefused refusal);

  // Those that wait or run, of that tenant or of all, by arrival.
  [[nodiscard]] std::vector<RequestRecord> live(
      const std::optional<std::string>& tenant = std::nullopt) const;
  // The last kEndedKept that ended, of that tenant or of all, youngest first. Of one tenant's
  // refusals, which cost him nothing, only the last kRefusedKept are among them, so that he cannot
  // push out what others did.
  [[nodiscard]] std::vector<RequestRecord> ended(
      const std::optional<std::string>& tenant = std::nullopt) const;
  // Live requests by stage, kWaiting to kGenerating.
  [[nodiscard]] std::array<std::size_t, 4> counts() const;
  // When the one arrived that waits longest for its place; absent: none waits.
  [[nodiscard]] std::optional<SteadyTime> oldest_waiting() const;

  // Ends the live requests of that id, those of `tenant` only where that is given. How many.
  std::size_t cancel(const std::string& id, const std::optional<std::string>& tenant);

  // Called with each request that ends, within the change. Once, before the first request.
  void on_end(OnEnd on_end) { on_end_ = std::move(on_end); }

 private:
  friend class RequestEntry;

  struct Ended {
    std::uint64_t number;  // by their ends
    RequestRecord record;
  };
  // Of one tenant, youngest first.
  struct OfTenant {
    std::deque<Ended> worked;
    std::deque<Ended> refused;
    std::uint64_t last = 0;
  };

  // One that waits for the core strand.
  struct Refusal {
    RequestArrival arrival;
    events::RequestRefused event;
    Reason reason;
  };

  void ended(RequestEntry& entry);
  void note_refusals();
  void note_refusal(Refusal refusal);
  void begin_second();
  void omit(std::uint64_t count);
  void keep(const RequestRecord& record);
  void tell_omitted();

  Clock& clock_;
  EventSink& events_;
  std::list<std::shared_ptr<RequestEntry>> live_;
  std::map<std::string, OfTenant> ended_;
  std::uint64_t ends_ = 0;
  OnEnd on_end_;

  std::optional<SteadyTime> second_began_;  // of the refusals below
  std::uint32_t told_ = 0;
  std::map<std::string, std::uint32_t> told_of_;  // by tenant
  std::uint64_t omitted_ = 0;
  Timer omitted_timer_;

  // Held only to put something in or to take all.
  std::mutex waiting_mutex_;
  std::vector<Refusal> waiting_;
  std::map<Reason, std::uint64_t> waiting_beyond_;
  bool noting_ = false;  // a task is posted that takes them
};

}  // namespace berth::residency
