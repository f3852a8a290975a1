#include "worker/service/control_hub.h"

#include <utility>

#include "worker/service/control_stream.h"

namespace berth::worker {

ControlHub::ControlHub(std::string instance_id, Handlers handlers)
    : instance_id_(std::move(instance_id)), handlers_(std::move(handlers)) {
  progress_.set_phase("starting");
}

ControlHub::~ControlHub() = default;

void ControlHub::tell_progress(const v1::Progress& progress) {
  {
    const std::lock_guard lock(mutex_);
    progress_ = progress;
    has_progress_ = true;
  }
  poke();
}

void ControlHub::tell_ready(v1::Ready ready) {
  {
    const std::lock_guard lock(mutex_);
    ready_message_ = std::move(ready);
    has_ready_ = true;
    ready_ = true;
  }
  poke();
}

void ControlHub::tell_load_failed(v1::LoadFailed failed) {
  {
    const std::lock_guard lock(mutex_);
    failed_ = std::move(failed);
    has_failed_ = true;
  }
  poke();
}

void ControlHub::tell_heartbeat(const v1::Heartbeat& heartbeat) {
  {
    const std::lock_guard lock(mutex_);
    heartbeat_ = heartbeat;
  }
  poke();
}

void ControlHub::tell_drained() {
  {
    const std::lock_guard lock(mutex_);
    drained_ = true;
  }
  poke();
}

void ControlHub::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  poke();
}

bool ControlHub::has_stream() const {
  const std::lock_guard lock(mutex_);
  return stream_ != nullptr;
}

bool ControlHub::attach(const std::shared_ptr<ControlStream>& stream) {
  const std::lock_guard lock(mutex_);
  if (stream_ != nullptr) return false;
  stream_ = stream;
  has_progress_ = true;  // the first message of every stream
  has_ready_ = ready_message_.has_value();
  has_failed_ = failed_.has_value();
  return true;
}

void ControlHub::detach(const ControlStream* stream) {
  std::shared_ptr<ControlStream> last;
  const std::lock_guard lock(mutex_);
  if (stream_.get() == stream) last = std::move(stream_);
}

std::optional<v1::ControlEvent> ControlHub::next(bool& closing) {
  const std::lock_guard lock(mutex_);
  v1::ControlEvent event;
  closing = false;
  if (has_progress_) {
    has_progress_ = false;
    *event.mutable_progress() = progress_;
  } else if (has_ready_) {
    has_ready_ = false;
    *event.mutable_ready() = *ready_message_;
  } else if (has_failed_) {
    has_failed_ = false;
    *event.mutable_load_failed() = *failed_;
  } else if (heartbeat_) {
    *event.mutable_heartbeat() = *heartbeat_;
    heartbeat_.reset();
  } else if (drained_) {
    drained_ = false;
    event.mutable_drained();
  } else {
    closing = closed_;
    return std::nullopt;
  }
  return event;
}

void ControlHub::poke() {
  std::shared_ptr<ControlStream> stream;
  {
    const std::lock_guard lock(mutex_);
    stream = stream_;
  }
  if (stream != nullptr) stream->poke();
}

}  // namespace berth::worker
