#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "supervisor/gateway/http/exchange.h"

namespace berth::gateway::openai {

// Stands for a handler that is made later, on the core strand: tells it what it has missed.
class LateHandler : public Handler {
 public:
  // Whether the client is gone already, so that nothing need be begun.
  [[nodiscard]] bool gone() const {
    const std::lock_guard lock(mutex_);
    return gone_;
  }

  void become(std::shared_ptr<Handler> next) {
    {
      const std::lock_guard lock(mutex_);
      if (!gone_) next_ = next;
      if (!gone_) return;
    }
    next->on_gone();
  }

  void on_room() override {
    if (const std::shared_ptr<Handler> next = this->next()) next->on_room();
  }
  void on_gone() override {
    {
      const std::lock_guard lock(mutex_);
      gone_ = true;
    }
    if (const std::shared_ptr<Handler> next = this->next()) next->on_gone();
  }

 private:
  std::shared_ptr<Handler> next() const {
    const std::lock_guard lock(mutex_);
    return next_;
  }

  mutable std::mutex mutex_;
  std::shared_ptr<Handler> next_;
  bool gone_ = false;
};

}  // namespace berth::gateway::openai
