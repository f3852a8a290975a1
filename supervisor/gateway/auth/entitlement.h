#pragma once

#include "supervisor/core/entitlement.h"

namespace berth::gateway {

// What every answer of the gateway that holds an error goes through, in each protocol.
using core::for_caller;

}  // namespace berth::gateway
