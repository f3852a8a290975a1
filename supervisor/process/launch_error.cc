#include "supervisor/process/launch_error.h"

#include <cerrno>
#include <utility>

#include "common/errno_text.h"
#include "supervisor/core/failure.h"

namespace berth::process {
namespace {

Error of_class(core::FailureClass failure_class, std::string message) {
  FailureEvidence evidence;
  evidence.failure_class = core::failure_class_name(failure_class);
  evidence.reason = message;
  ErrorExtras extras;
  extras.failure = std::move(evidence);
  return {Reason::kLoadFailed, std::move(message), std::move(extras)};
}

}  // namespace

Error launch_error(const std::string& step, int error) {
  std::string message = step + ": " + errno_text(error);
  switch (error) {
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case ENOMEM:
    case ENOBUFS:
    // Not shortages, but they pass as these do: a disk or its server that stumbled, a program that
    // is being written.
    case EIO:
    case ESTALE:
    case ETXTBSY:
      return of_class(core::FailureClass::kResource, std::move(message));
    default:
      return {Reason::kLoadFailed, std::move(message)};
  }
}

Error shortage_error(std::string message) {
  return of_class(core::FailureClass::kResource, std::move(message));
}

Error timeout_error(std::string message) {
  return of_class(core::FailureClass::kTimeout, std::move(message));
}

Error slow_launch_error(const std::string& program, std::chrono::milliseconds waited) {
  return timeout_error("execve " + program + ": not done within " + std::to_string(waited.count()) +
                       " ms");
}

}  // namespace berth::process
