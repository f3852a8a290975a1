#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/result.h"

namespace boost::asio::ssl {
class context;
}  // namespace boost::asio::ssl

namespace berth::gateway {

// The bytes of one connection, with TLS or without, so that a connection's code is compiled once.
// One read and one write at a time. The server's thread only; callbacks never come from within a
// call, and keep alive what they need of the connection, as the transport lives as long as them.
class Transport {
 public:
  using error_code = boost::system::error_code;
  // `bytes` are valid during the call only.
  using Read = std::function<void(const error_code& failed, std::string_view bytes)>;
  using Done = std::function<void(const error_code& failed)>;
  using Written = std::function<void(const error_code& failed, std::size_t bytes)>;

  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  // Before anything else; without TLS there is nothing to do, and `needs_handshake` says so.
  [[nodiscard]] virtual bool needs_handshake() const = 0;
  virtual void handshake(Done done) = 0;
  // 1 to `most` bytes.
  virtual void read(std::size_t most, Read done) = 0;
  // At least one of `bytes`, which stay where they are until then.
  virtual void write(std::string_view bytes, Written done) = 0;
  // Says that no more is written. The client's own end of the connection stays open, and may be
  // read. With TLS `done` is called when the client has said the same; without it, never.
  virtual void finish(Done done) = 0;
  // Whether the client has closed his sending half, or all of it, also where bytes that nobody has
  // read stand before that end.
  [[nodiscard]] virtual bool client_ended() = 0;
  // Ends what is pending. `reset`: the client shall not take it for a proper end.
  virtual void close(bool reset) = 0;
};

// Of a socket: what client_ended() is.
bool has_ended(int socket);

// `scratch` is where bytes are read to: shared by all connections of one thread.
std::unique_ptr<Transport> plain_transport(boost::asio::ip::tcp::socket socket,
                                           std::shared_ptr<std::string> scratch);
std::unique_ptr<Transport> tls_transport(boost::asio::ip::tcp::socket socket,
                                         boost::asio::ssl::context& context);

// TLS 1.2 and later, ALPN http/1.1. Errors: kInvalidArgument, which names the file.
Result<std::shared_ptr<boost::asio::ssl::context>> tls_context(const std::string& cert,
                                                               const std::string& key);

}  // namespace berth::gateway
