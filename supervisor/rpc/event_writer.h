#pragma once

#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "berth/v1/error.pb.h"
#include "supervisor/rpc/error_detail.h"

namespace berth::rpc {

// The server's end of a stream of `Message`s: a bounded queue with one write outstanding, a status
// that is sent exactly once after the last message, and a life until gRPC is done with it. For
// reactors of the gateway and the admin service. Thread-safe.
//
// A derived class says what room and the client's going mean. It is kept alive by `self_` until
// OnDone(), so make it with std::make_shared and call begin() before it is given to gRPC.
template <typename Message>
class EventWriter : public grpc::ServerWriteReactor<Message>,
                    public std::enable_shared_from_this<EventWriter<Message>> {
 public:
  // Messages that may wait to be written. Beyond them push() says that there is no room; it still
  // takes the message, since what comes unasked (an end, a change of state) must not be lost.
  static constexpr std::size_t kRoom = 64;
  static constexpr std::size_t kResumeAt = 16;

  explicit EventWriter(grpc::CallbackServerContext& context) : context_(context) {}

  void begin(std::shared_ptr<EventWriter> self) { self_ = std::move(self); }

  // Returns whether there is room for one more.
  bool push(Message message) {
    const std::lock_guard lock(mutex_);
    if (closed_ || last_) return true;
    queue_.push_back(std::move(message));
    write_next();
    full_ = full_ || queue_.size() >= kRoom;
    return !full_;
  }

  // As push(), but replaces the newest waiting message where `same_kind(newest)` says that only the
  // latest of its kind matters.
  template <typename SameKind>
  bool push_latest(Message message, SameKind same_kind) {
    {
      const std::lock_guard lock(mutex_);
      if (queue_.size() > 1 && same_kind(queue_.back())) {
        queue_.back() = std::move(message);
        return !full_;
      }
    }
    return push(std::move(message));
  }

  // Messages that wait to be written.
  [[nodiscard]] std::size_t waiting() {
    const std::lock_guard lock(mutex_);
    return queue_.size();
  }

  // Sends what waits, then the status. Later calls do nothing.
  void end(grpc::Status status) {
    const std::lock_guard lock(mutex_);
    if (closed_ || last_) return;
    last_ = std::move(status);
    if (queue_.empty()) finish();
  }

  // The last message and the status in one.
  void end_with(Message message, grpc::Status status) {
    const std::lock_guard lock(mutex_);
    if (closed_ || last_) return;
    finish_with(std::move(message), std::move(status));
  }

  // As end_with() and end(), with the detail in the trailer. The context is gone once gRPC is done
  // with the call, and that cannot be before Finish: so it is touched only here, under the lock.
  void fail_with(Message message, const v1::ErrorDetail& detail, grpc::Status status) {
    const std::lock_guard lock(mutex_);
    if (closed_ || last_) return;
    context_.AddTrailingMetadata(kErrorTrailer, to_trailer(detail));
    finish_with(std::move(message), std::move(status));
  }
  void fail(const v1::ErrorDetail& detail, grpc::Status status) {
    const std::lock_guard lock(mutex_);
    if (closed_ || last_) return;
    context_.AddTrailingMetadata(kErrorTrailer, to_trailer(detail));
    last_ = std::move(status);
    if (queue_.empty()) finish();
  }

 protected:
  // There is room again. Not under the lock.
  virtual void on_room() {}
  // The client is gone; nothing more is sent. Once, not under the lock.
  virtual void on_gone() {}
  // gRPC is done with the call: the last call, whatever happened. Drop what refers back to this.
  virtual void on_over() {}

 private:
  void OnWriteDone(bool ok) final {
    bool room = false;
    bool gone = false;
    {
      const std::lock_guard lock(mutex_);
      writing_ = false;
      if (!queue_.empty()) queue_.pop_front();
      if (ok && !closed_) {
        write_next();
        if (full_ && queue_.size() <= kResumeAt) {
          full_ = false;
          room = true;
        }
        if (queue_.empty() && last_) finish();
      } else {
        gone = close();
        finish();
      }
    }
    if (gone) on_gone();
    if (room) on_room();
  }

  void OnCancel() final {
    bool gone = false;
    {
      const std::lock_guard lock(mutex_);
      gone = close();
      if (!writing_) finish();
    }
    if (gone) on_gone();
  }

  void OnDone() final {
    bool gone = false;
    {
      const std::lock_guard lock(mutex_);
      gone = close() && !last_;
    }
    if (gone) on_gone();
    on_over();
    // The caller's last reference may be this one.
    const std::shared_ptr<EventWriter> self = std::move(self_);
  }

  // Under the lock.
  void finish_with(Message message, grpc::Status status) {
    queue_.push_back(std::move(message));
    last_ = std::move(status);
    write_next();
  }
  void write_next() {
    if (writing_ || queue_.empty() || closed_ || finished_) return;
    writing_ = true;
    if (last_ && queue_.size() == 1) {
      finished_ = true;
      this->StartWriteAndFinish(&queue_.front(), grpc::WriteOptions(), *last_);
    } else {
      this->StartWrite(&queue_.front());
    }
  }
  void finish() {
    if (finished_) return;
    finished_ = true;
    this->Finish(closed_ ? grpc::Status(grpc::StatusCode::CANCELLED, "The client went away.")
                         : *last_);
  }
  bool close() { return !std::exchange(closed_, true); }

  grpc::CallbackServerContext& context_;
  std::mutex mutex_;
  std::deque<Message> queue_;  // the front is being written while writing_
  std::optional<grpc::Status> last_;
  bool writing_ = false;
  bool full_ = false;
  bool closed_ = false;    // the client is gone
  bool finished_ = false;  // Finish was called
  std::shared_ptr<EventWriter> self_;
};

}  // namespace berth::rpc
