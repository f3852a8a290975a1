#include "supervisor/core/failure.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "common/named_rows.h"

namespace berth::core {
namespace {

struct Row {
  std::string_view name;
  std::string_view sentence;
};

constexpr std::array kRows = {
    Row{"permanent", "It cannot be loaded as it is; another file, setting or version is needed."},
    Row{"resource", "Memory could not be allocated."},
    Row{"oom", "The kernel killed the worker because memory ran out."},
    Row{"crash", "The worker's program is broken or met a defect."},
    Row{"crash_loop", "The worker died three times within two minutes."},
    Row{"stalled", "The load made no progress any more."},
    Row{"timeout", "The load took longer than load_timeout."},
    Row{"launch", "The worker's process could not be started."},
    Row{"unclassified", "The worker ended, and nothing that is known says why."},
};
static_assert(kRows.size() == static_cast<std::size_t>(FailureClass::kUnclassified) + 1);

}  // namespace

std::string_view failure_class_name(FailureClass failure_class) {
  return kRows.at(static_cast<std::size_t>(failure_class)).name;
}

std::string_view failure_class_sentence(FailureClass failure_class) {
  return kRows.at(static_cast<std::size_t>(failure_class)).sentence;
}

FailureClass failure_class_from_name(std::string_view name) {
  return value_named<FailureClass>(kRows, name).value_or(FailureClass::kUnclassified);
}

FailureClass failure_class_said_by_worker(std::string_view name) {
  const FailureClass said = failure_class_from_name(name);
  switch (said) {
    case FailureClass::kPermanent:
    case FailureClass::kResource:
    case FailureClass::kCrash:
      return said;
    case FailureClass::kOom:
    case FailureClass::kCrashLoop:
    case FailureClass::kStalled:
    case FailureClass::kTimeout:
    case FailureClass::kLaunch:
    case FailureClass::kUnclassified:
      break;
  }
  return FailureClass::kUnclassified;
}

std::string failure_sentence(const LoadFailure& failure) {
  std::string text;
  if (failure.status) text = to_string(*failure.status);
  if (!failure.reason.empty()) {
    if (!text.empty()) text += ": ";
    text += failure.reason;
  }
  if (text.empty()) text = failure_class_sentence(failure.failure_class);
  return text;
}

}  // namespace berth::core
