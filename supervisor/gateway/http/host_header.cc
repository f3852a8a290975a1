#include "supervisor/gateway/http/host_header.h"

#include <boost/asio/ip/address.hpp>
#include <boost/system/error_code.hpp>
#include <string>

namespace berth::gateway {
namespace {

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_address(std::string_view text) {
  boost::system::error_code failed;
  boost::asio::ip::make_address(std::string(text), failed);
  return !failed;
}

}  // namespace

bool host_allowed(std::string_view host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    if (end == std::string_view::npos) return false;
    const std::string_view rest = host.substr(end + 1);
    if (!rest.empty() && (rest.front() != ':' || !is_port(rest.substr(1)))) return false;
    return is_address(host.substr(1, end - 1));
  }
  const std::size_t colon = host.find(':');
  if (colon != std::string_view::npos) {
    if (!is_port(host.substr(colon + 1))) return false;
    host = host.substr(0, colon);
  }
  return host == "localhost" || is_address(host);
}

}  // namespace berth::gateway
