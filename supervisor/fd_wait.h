#pragma once

#include <boost/asio/io_context.hpp>

#include "supervisor/process/async.h"

namespace berth {

// The real OnReadable on the io_context of the core strand, which must outlive every wait.
process::OnReadable readable_on(boost::asio::io_context& io);

}  // namespace berth
