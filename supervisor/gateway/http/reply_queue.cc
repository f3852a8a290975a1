#include "supervisor/gateway/http/reply_queue.h"

#include <algorithm>
#include <utility>

namespace berth::gateway {

class ReplyQueue::Handle : public Reply {
 public:
  explicit Handle(std::shared_ptr<ReplyQueue> queue) : queue_(std::move(queue)) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() override {
    // Does nothing behind a complete answer.
    queue_->break_off();
  }

  void send(HttpResponse response) override { queue_->send(std::move(response)); }
  void begin(HttpResponse head) override { queue_->begin(std::move(head)); }
  bool write(std::string piece) override { return queue_->write(std::move(piece)); }
  void end() override { queue_->end(); }
  void break_off() override { queue_->break_off(); }

 private:
  const std::shared_ptr<ReplyQueue> queue_;
};

std::shared_ptr<Reply> ReplyQueue::handle() {
  return std::make_shared<Handle>(shared_from_this());
}

void ReplyQueue::send(HttpResponse response) {
  std::unique_lock lock(mutex_);
  if (gone_ || phase_ != Phase::kFresh) return;
  phase_ = Phase::kComplete;
  news_.head = std::move(response);
  news_.whole = true;
  news_.ended = true;
  tell(lock);
}

void ReplyQueue::begin(HttpResponse head) {
  std::unique_lock lock(mutex_);
  if (gone_ || phase_ != Phase::kFresh) return;
  phase_ = Phase::kStream;
  head.body.clear();
  news_.head = std::move(head);
  tell(lock);
}

bool ReplyQueue::write(std::string piece) {
  std::unique_lock lock(mutex_);
  if (gone_ || phase_ != Phase::kStream) return false;
  waiting_ += piece.size();
  if (news_.body.empty()) {
    news_.body = std::move(piece);
  } else {
    news_.body += piece;
  }
  const bool room = waiting_ < Reply::kRoom;
  if (!room) wants_room_ = true;
  tell(lock);
  return room;
}

void ReplyQueue::end() {
  std::unique_lock lock(mutex_);
  if (gone_ || phase_ != Phase::kStream) return;
  phase_ = Phase::kComplete;
  news_.ended = true;
  tell(lock);
}

void ReplyQueue::break_off() {
  std::unique_lock lock(mutex_);
  if (gone_ || phase_ == Phase::kComplete) return;
  news_.broken = true;
  phase_ = Phase::kComplete;
  tell(lock);
}

void ReplyQueue::tell(std::unique_lock<std::mutex>& lock) {
  if (std::exchange(told_, true)) return;
  lock.unlock();
  mailbox_->post([self = shared_from_this()] { self->wake_(); });
}

ReplyQueue::News ReplyQueue::take() {
  const std::lock_guard lock(mutex_);
  told_ = false;
  return std::exchange(news_, {});
}

bool ReplyQueue::sent(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  waiting_ -= std::min(bytes, waiting_);
  return waiting_ <= Reply::kRoom / 4 && std::exchange(wants_room_, false);
}

bool ReplyQueue::close() {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::kComplete) return false;
  gone_ = true;
  news_ = {};
  return true;
}

bool ReplyQueue::gone() const {
  const std::lock_guard lock(mutex_);
  return gone_;
}

}  // namespace berth::gateway
