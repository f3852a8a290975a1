#include "supervisor/gateway/http/transport.h"

#include <poll.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/socket_base.hpp>
#include <utility>

namespace berth::gateway {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

class PlainTransport : public Transport {
 public:
  PlainTransport(tcp::socket socket, std::shared_ptr<std::string> scratch)
      : socket_(std::move(socket)), scratch_(std::move(scratch)) {
    error_code ignored;
    socket_.non_blocking(true, ignored);
  }

  [[nodiscard]] bool needs_handshake() const override { return false; }
  void handshake(Done /*done*/) override {}

  // Waits without a buffer: an idle connection has none.
  void read(std::size_t most, Read done) override {
    socket_.async_wait(tcp::socket::wait_read,
                       [this, most, done = std::move(done)](const error_code& failed) mutable {
                         if (failed) return done(failed, {});
                         read_now(most, std::move(done));
                       });
  }

  void write(std::string_view bytes, Written done) override {
    socket_.async_write_some(asio::const_buffer(bytes.data(), bytes.size()), std::move(done));
  }

  void finish(Done /*done*/) override {
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
  }

  [[nodiscard]] bool client_ended() override { return has_ended(socket_.native_handle()); }

  void close(bool reset) override {
    error_code ignored;
    if (reset) socket_.set_option(asio::socket_base::linger(true, 0), ignored);
    socket_.close(ignored);
  }

 private:
  void read_now(std::size_t most, Read done) {
    error_code failed;
    const std::size_t room = std::min(most, scratch_->size());
    const std::size_t got = socket_.read_some(asio::buffer(*scratch_, room), failed);
    if (failed == asio::error::would_block) return read(most, std::move(done));
    done(failed, std::string_view(*scratch_).substr(0, got));
  }

  tcp::socket socket_;
  const std::shared_ptr<std::string> scratch_;
};

}  // namespace

bool has_ended(int socket) {
  pollfd one{.fd = socket, .events = POLLRDHUP, .revents = 0};
  return ::poll(&one, 1, 0) > 0;
}

std::unique_ptr<Transport> plain_transport(tcp::socket socket,
                                           std::shared_ptr<std::string> scratch) {
  return std::make_unique<PlainTransport>(std::move(socket), std::move(scratch));
}

}  // namespace berth::gateway
