#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace berth::gateway {

// How other threads reach the server's: what they post between two of its turns costs one wake-up.
// Shared by all who may still post when the server is gone; then it takes nothing.
class Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  explicit Mailbox(boost::asio::io_context& io) : io_(&io) {}

  // Calls `news` on the server's thread, never from within this call, in the order in which one
  // thread posted. Returns false, and drops it, where the server is gone. Any thread.
  bool post(std::function<void()> news);
  // The server goes; what has not run yet runs now. The server's thread, or when that has ended.
  void close();

 private:
  void deliver();

  std::mutex mutex_;
  boost::asio::io_context* io_;  // null: closed
  std::vector<std::function<void()>> waiting_;
  bool woken_ = false;
};

}  // namespace berth::gateway
