#include "supervisor/gateway/http/mailbox.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <utility>

namespace berth::gateway {

bool Mailbox::post(std::function<void()> news) {
  const std::lock_guard lock(mutex_);
  if (io_ == nullptr) return false;
  waiting_.push_back(std::move(news));
  if (!std::exchange(woken_, true)) {
    boost::asio::post(*io_, [self = shared_from_this()] { self->deliver(); });
  }
  return true;
}

void Mailbox::close() {
  {
    const std::lock_guard lock(mutex_);
    io_ = nullptr;
  }
  deliver();
}

void Mailbox::deliver() {
  std::vector<std::function<void()>> news;
  {
    const std::lock_guard lock(mutex_);
    news.swap(waiting_);
    woken_ = false;
  }
  for (const auto& one : news) one();
}

}  // namespace berth::gateway
