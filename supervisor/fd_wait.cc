#include "supervisor/fd_wait.h"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <memory>
#include <utility>

namespace berth {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Where the kernel cannot watch the descriptor (its limit of watches is reached).
constexpr auto kPollPeriod = std::chrono::milliseconds(500);

// Lends a descriptor to asio for the time of one wait and never closes it.
class DescriptorWait : public Timer::Impl {
 public:
  DescriptorWait(asio::io_context& io, int fd, std::function<void()> callback)
      : lent_(std::make_shared<Lent>(io)) {
    const auto on_readable = [weak = std::weak_ptr(lent_),
                              callback = std::move(callback)](const error_code& failed) {
      const std::shared_ptr<Lent> lent = weak.lock();
      // Dropped between the readiness and this call: nobody wants it any more.
      if (failed || !lent) return;
      // Before the callback, which may wait for the same descriptor again.
      if (lent->descriptor.is_open()) lent->descriptor.release();
      callback();
    };
    error_code failed;
    lent_->descriptor.assign(fd, failed);
    if (!failed) {
      lent_->descriptor.async_wait(asio::posix::stream_descriptor::wait_read, on_readable);
    } else {
      lent_->poll.expires_after(kPollPeriod);
      lent_->poll.async_wait(on_readable);
    }
  }
  ~DescriptorWait() override {
    if (lent_->descriptor.is_open()) lent_->descriptor.release();
  }
  DescriptorWait(const DescriptorWait&) = delete;
  DescriptorWait& operator=(const DescriptorWait&) = delete;

 private:
  struct Lent {
    explicit Lent(asio::io_context& io) : descriptor(io), poll(io) {}
    asio::posix::stream_descriptor descriptor;
    asio::steady_timer poll;
  };
  std::shared_ptr<Lent> lent_;
};

}  // namespace

process::OnReadable readable_on(asio::io_context& io) {
  return [&io](int fd, std::function<void()> callback) {
    return Timer(std::make_unique<DescriptorWait>(io, fd, std::move(callback)));
  };
}

}  // namespace berth
