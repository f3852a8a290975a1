#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/system/error_code.hpp>
#include <string>

#include "supervisor/process/http_call.h"

namespace berth::process {

// What the two clients of programs share; for their sources only.

boost::asio::generic::stream_protocol::endpoint endpoint_of(const HttpAddress& address);

// kDeadline, kWorkerDied (the connection), kInternal (what came over it).
Error explain_http(const std::string& step, const boost::system::error_code& failed);

}  // namespace berth::process
