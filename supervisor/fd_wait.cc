#include "supervisor/fd_wait.h"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <utility>

namespace berth {
namespace {

namespace asio = boost::asio;

// Lends the descriptor to asio for the time of one wait and never closes it.
class DescriptorWait : public Timer::Impl {
 public:
  DescriptorWait(asio::io_context& io, int fd, std::function<void()> callback)
      : descriptor_(std::make_shared<asio::posix::stream_descriptor>(io, fd)) {
    descriptor_->async_wait(asio::posix::stream_descriptor::wait_read,
                            [lent = std::weak_ptr(descriptor_), callback = std::move(callback)](
                                const boost::system::error_code& failed) {
                              // Dropped between the readiness and this call: nobody wants it any
                              // more.
                              if (!failed && !lent.expired()) callback();
                            });
  }
  ~DescriptorWait() override { descriptor_->release(); }
  DescriptorWait(const DescriptorWait&) = delete;
  DescriptorWait& operator=(const DescriptorWait&) = delete;

 private:
  std::shared_ptr<asio::posix::stream_descriptor> descriptor_;
};

}  // namespace

process::OnReadable readable_on(asio::io_context& io) {
  return [&io](int fd, std::function<void()> callback) {
    return Timer(std::make_unique<DescriptorWait>(io, fd, std::move(callback)));
  };
}

}  // namespace berth
