#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <utility>

#include "supervisor/gateway/http/transport.h"

namespace berth::gateway {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;

constexpr std::size_t kReadBytes = 4096;
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
// ALPN's list of one name, with its length before it.
constexpr std::array<unsigned char, 9> kHttp11 = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

class TlsTransport : public Transport {
 public:
  TlsTransport(tcp::socket socket, ssl::context& context) : stream_(std::move(socket), context) {}

  [[nodiscard]] bool needs_handshake() const override { return true; }
  void handshake(Done done) override {
    stream_.async_handshake(ssl::stream_base::server, std::move(done));
  }

  void read(std::size_t most, Read done) override {
    auto then = [this, done = std::move(done)](const error_code& failed, std::size_t got) {
      done(failed, {room_.data(), got});
    };
    stream_.async_read_some(asio::buffer(room_, most), std::move(then));
  }

  void write(std::string_view bytes, Written done) override {
    stream_.async_write_some(asio::const_buffer(bytes.data(), bytes.size()), std::move(done));
  }

  void finish(Done done) override { stream_.async_shutdown(std::move(done)); }

  [[nodiscard]] bool client_ended() override {
    return has_ended(stream_.next_layer().native_handle());
  }

  void close(bool reset) override {
    error_code ignored;
    tcp::socket& socket = stream_.next_layer();
    if (reset) socket.set_option(asio::socket_base::linger(true, 0), ignored);
    socket.close(ignored);
  }

 private:
  ssl::stream<tcp::socket> stream_;
  std::array<char, kReadBytes> room_{};
};

int choose_protocol(SSL* /*ssl*/, const unsigned char** out, unsigned char* length,
                    const unsigned char* offered, unsigned int offered_length, void* /*unused*/) {
  unsigned char* chosen = nullptr;
  const int found = ::SSL_select_next_proto(&chosen, length, kHttp11.data(), kHttp11.size(),
                                            offered, offered_length);
  if (found != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

tl::unexpected<Error> bad_file(const std::string& what, const std::string& file,
                               const boost::system::error_code& why) {
  return fail(Reason::kInvalidArgument, what + " \"" + file +
                                            "\" cannot be used for TLS: " + why.message() +
                                            ". It must be PEM that berth may "
                                            "read.");
}

}  // namespace

std::unique_ptr<Transport> tls_transport(tcp::socket socket, ssl::context& context) {
  return std::make_unique<TlsTransport>(std::move(socket), context);
}

Result<std::shared_ptr<ssl::context>> tls_context(const std::string& cert, const std::string& key) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
  ::SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  ::SSL_CTX_set_cipher_list(native, kCiphers);
  ::SSL_CTX_set_options(native, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  // An idle connection gives its buffers back.
  ::SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  ::SSL_CTX_set_alpn_select_cb(native, choose_protocol, nullptr);
  boost::system::error_code failed;
  context->use_certificate_chain_file(cert, failed);
  if (failed) return bad_file("server.tls_cert", cert, failed);
  context->use_private_key_file(key, ssl::context::pem, failed);
  if (failed) return bad_file("server.tls_key", key, failed);
  if (::SSL_CTX_check_private_key(native) != 1) {
    return fail(
        Reason::kInvalidArgument,
        "server.tls_key \"" + key + "\" is not the key of server.tls_cert \"" + cert + "\".");
  }
  return context;
}

}  // namespace berth::gateway
