#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/core/caller.h"
#include "supervisor/core/generation.h"
#include "supervisor/gateway/http/exchange.h"
#include "supervisor/residency/residency.h"

namespace berth::gateway::openai {

// Headers wait so long for the first data, so that a refusal can still have its status (spec 6).
inline constexpr Duration kCommitAfter = std::chrono::seconds(1);
// How often a stream that waits shows its state, where that has changed.
inline constexpr Duration kShowEvery = std::chrono::milliseconds(500);
// The longest silence of a stream. Proxies hang up after 60 s of it (T32), some after 30 s.
inline constexpr Duration kKeepAlive = std::chrono::seconds(10);
inline constexpr Duration kKeepAliveCheck = std::chrono::milliseconds(2500);

// "queued, position 3", "loading 43 %, about 12 s"
std::string state_text(const residency::ClaimProgress& progress);
// "prefill 60 %"
std::string state_text(const core::PrefillEvent& prefill);

// One answer as server-sent events, from the first wait to its end. Its headers go out with the
// first data, or after kCommitAfter; from then on it shows what it waits for as comments, and
// breaks every silence. Thread-safe. Its timer belongs to the core strand, whatever thread lets go
// of it last.
class EventStream : public std::enable_shared_from_this<EventStream> {
 public:
  EventStream(Clock& clock, std::shared_ptr<Reply> reply);
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;
  ~EventStream();

  // Begins to watch the time. Core strand; once.
  void watch();

  // What is waited for now.
  void show(std::string state);
  // Data, which ends the waiting. Returns whether there is room for more.
  bool write(std::string data);
  // The last data; the stream is complete.
  void end(std::string data);
  // The refusal, while no headers are out; else an error event, which is the last.
  void fail(const Error& error, const std::string& request_id, const core::Caller& caller);
  // Hands the reply to who wants to answer in another way. Whether that is possible: no headers are
  // out. Nothing more is sent by this then.
  [[nodiscard]] bool give_up();
  // The client reads again.
  void on_room();
  // Nothing more is sent.
  void on_gone();

  [[nodiscard]] bool has_room() const;

 private:
  void arm(SteadyTime when);
  void tick();
  // Under the lock.
  void commit();
  void put(std::string piece);
  void comment(const std::string& text);
  void speak(SteadyTime now);

  Clock& clock_;
  const std::shared_ptr<Reply> reply_;
  const SteadyTime arrived_;
  Timer timer_;  // core strand

  mutable std::mutex mutex_;
  bool committed_ = false;
  bool over_ = false;
  bool room_ = true;
  bool has_data_ = false;
  bool line_ended_ = true;  // a comment cannot stand within a line
  SteadyTime last_put_{};
  std::string state_;
  std::string shown_;
};

}  // namespace berth::gateway::openai
