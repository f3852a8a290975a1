#pragma once

#include <variant>

#include "supervisor/core/exit_status.h"

namespace berth::rpc {

// How a process ended, into a message with `exit_code` and `signal`: Failure, FailureRecord.
template <typename Message>
void put_exit(const core::ExitStatus& exit, Message& to) {
  if (const auto* exited = std::get_if<core::Exited>(&exit)) {
    to.set_exit_code(exited->code);
  } else if (const auto* signalled = std::get_if<core::Signalled>(&exit)) {
    to.set_signal(core::signal_name(signalled->signal));
  }
}

}  // namespace berth::rpc
