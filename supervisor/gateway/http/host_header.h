#pragma once

#include <string_view>

namespace berth::gateway {

// Whether a Host header may be answered: "localhost" and IP addresses, with or without a port. A
// page that a browser loaded from elsewhere can reach us only through a name of its own (DNS
// rebinding), never through these.
bool host_allowed(std::string_view host);

}  // namespace berth::gateway
