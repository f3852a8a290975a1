#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "berth/v1/worker.pb.h"

namespace berth::worker {

class ControlStream;

// What the worker has to tell its supervisor, between those who know it and the one control stream.
// Bounded by construction: of progress and heartbeats only the latest is kept; Ready, LoadFailed
// and Drained are said once (Ready and LoadFailed again on a new stream). Any thread. Outlives its
// streams.
class ControlHub {
 public:
  struct Handlers {
    std::function<void()> on_cancel_load;
    std::function<void()> on_drain;
    // The load's failure has been sent, so the process may end.
    std::function<void()> on_failure_sent;
    std::function<void(std::uint32_t threads)> on_set_threads;
  };
  // `instance_id` empty: not checked.
  ControlHub(std::string instance_id, Handlers handlers);
  ControlHub(const ControlHub&) = delete;
  ControlHub& operator=(const ControlHub&) = delete;
  ~ControlHub();

  void tell_progress(const v1::Progress& progress);
  void tell_ready(v1::Ready ready);
  void tell_load_failed(v1::LoadFailed failed);
  void tell_heartbeat(const v1::Heartbeat& heartbeat);
  void tell_drained();
  // Ends the stream: there is nothing more to say.
  void close();

  [[nodiscard]] bool ready() const { return ready_.load(); }
  [[nodiscard]] bool has_stream() const;
  [[nodiscard]] const std::string& instance_id() const { return instance_id_; }
  [[nodiscard]] const Handlers& handlers() const { return handlers_; }

  // For ControlStream. Only one stream at a time: false where there is one already.
  bool attach(const std::shared_ptr<ControlStream>& stream);
  void detach(const ControlStream* stream);
  // The next message, if any; `closing` says that there will be none after it.
  std::optional<v1::ControlEvent> next(bool& closing);

 private:
  void poke();

  const std::string instance_id_;
  const Handlers handlers_;
  std::atomic<bool> ready_{false};

  mutable std::mutex mutex_;
  std::shared_ptr<ControlStream> stream_;
  v1::Progress progress_;  // the latest
  bool has_progress_ = true;
  std::optional<v1::Ready> ready_message_;  // once it is ready
  bool has_ready_ = false;
  std::optional<v1::LoadFailed> failed_;  // once it has failed; kept, a stream may break
  bool has_failed_ = false;
  std::optional<v1::Heartbeat> heartbeat_;
  bool drained_ = false;
  bool closed_ = false;
};

}  // namespace berth::worker
