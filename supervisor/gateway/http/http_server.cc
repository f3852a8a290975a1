#include "supervisor/gateway/http/http_server.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "supervisor/gateway/http/host_header.h"

namespace berth::gateway {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kMaxConnections = 256;
constexpr std::uint32_t kMaxHeaderBytes = 16 << 10;
constexpr std::uint64_t kMaxBodyBytes = 64 << 10;
constexpr auto kRequestTimeout = std::chrono::seconds(10);
constexpr auto kAcceptPause = std::chrono::milliseconds(50);
constexpr auto kIdleTimeout = std::chrono::seconds(60);

using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

Response plain(const Request& request, http::status status, std::string body) {
  Response response(status, request.version());
  response.set(http::field::content_type, "text/plain; charset=utf-8");
  response.set(http::field::cache_control, "no-store");
  response.keep_alive(request.keep_alive());
  if (request.method() != http::verb::head) response.body() = std::move(body);
  response.prepare_payload();
  return response;
}

// The body of the one error table. Names and sentences here need no escaping.
Response refusal(const Request& request, Reason reason, std::string_view message) {
  const ReasonInfo& info = reason_info(reason);
  Response response = plain(request, static_cast<http::status>(info.http_status), "");
  response.set(http::field::content_type, "application/json");
  if (info.retry == Retry::kNever) response.set("x-should-retry", "false");
  if (request.method() != http::verb::head) {
    response.body() = R"({"error":{"message":")" + std::string(message) +
                      R"(","type":"invalid_request_error","code":")" + std::string(info.name) +
                      R"("}})" + "\n";
  }
  response.prepare_payload();
  return response;
}

class BeastServer : public HttpServer {
 public:
  BeastServer(HttpOptions options, tcp::endpoint endpoint)
      : options_(std::move(options)), acceptor_(io_, endpoint) {}

  ~BeastServer() override {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }
  BeastServer(const BeastServer&) = delete;
  BeastServer& operator=(const BeastServer&) = delete;

  void run() {
    // A named awaitable, as everywhere here: see docs/adr/0005-coroutines.md.
    asio::awaitable<void> accepting = accept();
    asio::co_spawn(io_, std::move(accepting), asio::detached);
    thread_ = std::thread([this] { io_.run(); });
  }

  [[nodiscard]] std::string address() const override {
    const tcp::endpoint local = acceptor_.local_endpoint();
    const std::string host = local.address().to_string();
    const std::string port = std::to_string(local.port());
    return local.address().is_v6() ? "[" + host + "]:" + port : host + ":" + port;
  }

 private:
  asio::awaitable<void> accept() {
    for (;;) {
      error_code failed;
      auto token = asio::redirect_error(asio::use_awaitable, failed);
      tcp::socket socket = co_await acceptor_.async_accept(token);
      if (failed == asio::error::operation_aborted) co_return;
      if (failed) {
        // Out of descriptors or memory: the rest is served, and some of it will end.
        asio::steady_timer pause(io_, kAcceptPause);
        co_await pause.async_wait(token);
        continue;
      }
      if (connections_ >= kMaxConnections) continue;  // drops the socket
      ++connections_;
      asio::awaitable<void> serving = serve(std::move(socket));
      asio::co_spawn(io_, std::move(serving), asio::detached);
    }
  }

  asio::awaitable<void> serve(tcp::socket socket) {
    beast::tcp_stream stream(std::move(socket));
    beast::flat_buffer buffer;
    for (bool again = true; again;) {
      again = co_await serve_one(stream, buffer);
    }
    error_code ignored;
    stream.socket().shutdown(tcp::socket::shutdown_both, ignored);
    --connections_;
  }

  // Returns whether the connection goes on.
  asio::awaitable<bool> serve_one(beast::tcp_stream& stream, beast::flat_buffer& buffer) {
    http::request_parser<http::string_body> parser;
    parser.header_limit(kMaxHeaderBytes);
    parser.body_limit(kMaxBodyBytes);
    error_code failed;
    auto token = asio::redirect_error(asio::use_awaitable, failed);
    if (buffer.size() == 0) {
      // Between requests a client may be idle for longer than a request may take.
      stream.expires_after(kIdleTimeout);
      const auto room = buffer.prepare(kFirstRead);
      const std::size_t got = co_await stream.async_read_some(room, token);
      if (failed) co_return false;
      buffer.commit(got);
    }
    stream.expires_after(kRequestTimeout);
    co_await http::async_read(stream, buffer, parser, token);
    std::optional<Response> response = answer_to(parser.get(), failed);
    if (!response) co_return false;
    const bool again = !failed && response->keep_alive();
    response->keep_alive(again);
    failed = {};
    co_await http::async_write(stream, *response, token);
    co_return again && !failed;
  }

  // Nothing where the client is gone.
  std::optional<Response> answer_to(const Request& request, error_code failed) {
    if (failed == http::error::header_limit) {
      return refusal(request, Reason::kHeadersTooLarge, "The header is larger than 16 KiB.");
    }
    if (failed == http::error::body_limit) {
      return refusal(request, Reason::kBodyTooLarge, "The body is larger than 64 KiB.");
    }
    if (failed == beast::error::timeout) {
      return std::nullopt;
    }
    if (failed && failed.category() == http::make_error_code(http::error::bad_method).category() &&
        failed != http::error::end_of_stream && failed != http::error::partial_message) {
      return refusal(request, Reason::kInvalidArgument, "This is not a valid HTTP/1.1 request.");
    }
    if (failed) return std::nullopt;
    return route(request);
  }

  // In the order in which every request is checked: Host, route, method.
  Response route(const Request& request) {
    const auto host = request.find(http::field::host);
    if (host == request.end() || !host_allowed({host->value().data(), host->value().size()})) {
      return refusal(request, Reason::kPermissionDenied,
                     "The Host header names neither localhost nor an address.");
    }
    std::string_view target(request.target().data(), request.target().size());
    target = target.substr(0, target.find('?'));
    if (target != "/livez" && target != "/readyz") {
      return refusal(request, Reason::kNotFound, "There is no such route.");
    }
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
      Response response = refusal(request, Reason::kMethodNotAllowed, "Use GET.");
      response.set(http::field::allow, "GET, HEAD");
      return response;
    }
    if (target == "/livez" || options_.ready()) return plain(request, http::status::ok, "ok\n");
    return plain(request, http::status::service_unavailable, "not ready\n");
  }

  static constexpr std::size_t kFirstRead = 4096;

  const HttpOptions options_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  std::size_t connections_ = 0;  // only its thread
  std::thread thread_;
};

tl::unexpected<Error> bad_address(const std::string& address) {
  return fail(Reason::kInvalidArgument,
              "server.http is \"" + address +
                  "\", but must be an IP address (or localhost) and a port, like "
                  "\"127.0.0.1:11500\".");
}

Result<tcp::endpoint> parse_endpoint(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return bad_address(address);
  std::string host = address.substr(0, colon);
  const std::string port = address.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string::npos) {
    return bad_address(address);  // IPv6 without brackets: where does the port begin?
  }
  if (host == "localhost") host = "127.0.0.1";
  error_code failed;
  const auto ip = asio::ip::make_address(host, failed);
  const bool digits = !port.empty() && port.size() <= 5 &&
                      port.find_first_not_of("0123456789") == std::string::npos;
  if (failed || !digits || std::stoul(port) > 65535) return bad_address(address);
  return tcp::endpoint(ip, static_cast<asio::ip::port_type>(std::stoul(port)));
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(HttpOptions options) {
  const Result<tcp::endpoint> endpoint = parse_endpoint(options.address);
  if (!endpoint) return fail(endpoint.error());
  const std::string address = options.address;
  try {
    auto server = std::make_unique<BeastServer>(std::move(options), *endpoint);
    server->run();
    return server;
  } catch (const boost::system::system_error& problem) {
    if (problem.code() == asio::error::address_in_use) {
      return fail(Reason::kConflict, "HTTP cannot listen on " + address +
                                         ": another program does. Stop it, or set server.http.");
    }
    const bool denied = problem.code() == asio::error::access_denied;
    return fail(denied ? Reason::kPermissionDenied : Reason::kInvalidArgument,
                "HTTP cannot listen on " + address + ": " + problem.code().message() +
                    ". Set server.http to an address of this machine.");
  }
}

}  // namespace berth::gateway
