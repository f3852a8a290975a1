#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <string>

#include "common/result.h"

namespace berth::gateway {

// The endpoint of server.http: an IP address or localhost, and a port. Error: kInvalidArgument.
Result<boost::asio::ip::tcp::endpoint> parse_endpoint(const std::string& address);

// "127.0.0.1:11500", "[::1]:11500"
std::string endpoint_text(const boost::asio::ip::tcp::endpoint& endpoint);

// Who is counted as one: an IPv4 address (also one that came mapped), or the first 64 bits of an
// IPv6 one, as one host has that many.
std::string network_of(const boost::asio::ip::address& address);

// Why nobody can listen there, and what to do.
Error listen_error(const std::string& address, const boost::system::error_code& why);

}  // namespace berth::gateway
