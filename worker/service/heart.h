#pragma once

#include <functional>
#include <mutex>
#include <utility>

#include "berth/v1/worker.pb.h"

namespace berth::worker {

// Tells the supervisor how busy the worker is, from any thread. Reading that and telling it are one
// step, so that the last word is never older than one before it: a worker that is idle must not be
// remembered as a busy one that does not get on (L9). Owns nothing that its functions use.
class Heart {
 public:
  using Read = std::function<v1::Heartbeat()>;
  using Tell = std::function<void(const v1::Heartbeat&)>;
  // Neither may block or call beat().
  Heart(Read read, Tell tell) : read_(std::move(read)), tell_(std::move(tell)) {}

  void beat() {
    const std::lock_guard lock(mutex_);
    tell_(read_());
  }

 private:
  const Read read_;
  const Tell tell_;
  std::mutex mutex_;
};

}  // namespace berth::worker
