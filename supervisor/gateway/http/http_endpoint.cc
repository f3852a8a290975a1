#include "supervisor/gateway/http/http_endpoint.h"

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <cstdint>

namespace berth::gateway {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

tl::unexpected<Error> bad_address(const std::string& address) {
  return fail(Reason::kInvalidArgument,
              "server.http is \"" + address +
                  "\", but must be an IP address (or localhost) and a port, like "
                  "\"127.0.0.1:11500\".");
}

}  // namespace

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
  boost::system::error_code failed;
  const auto ip = asio::ip::make_address(host, failed);
  const bool digits = !port.empty() && port.size() <= 5 &&
                      port.find_first_not_of("0123456789") == std::string::npos;
  if (failed || !digits || std::stoul(port) > 65535) return bad_address(address);
  return tcp::endpoint(ip, static_cast<asio::ip::port_type>(std::stoul(port)));
}

std::string endpoint_text(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  const std::string port = std::to_string(endpoint.port());
  return endpoint.address().is_v6() ? "[" + host + "]:" + port : host + ":" + port;
}

std::string network_of(const asio::ip::address& address) {
  if (address.is_v4()) return address.to_string();
  const asio::ip::address_v6 whole = address.to_v6();
  if (whole.is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, whole).to_string();
  asio::ip::address_v6::bytes_type bytes = whole.to_bytes();
  std::fill(bytes.begin() + bytes.size() / 2, bytes.end(), std::uint8_t{0});
  return asio::ip::address_v6(bytes, whole.scope_id()).to_string();
}

Error listen_error(const std::string& address, const boost::system::error_code& why) {
  if (why == asio::error::address_in_use) {
    return {Reason::kConflict, "HTTP cannot listen on " + address +
                                   ": another program does. Stop it, or set server.http."};
  }
  const bool denied = why == asio::error::access_denied;
  return {denied ? Reason::kPermissionDenied : Reason::kInvalidArgument,
          "HTTP cannot listen on " + address + ": " + why.message() +
              ". Set server.http to an address of this machine."};
}

}  // namespace berth::gateway
