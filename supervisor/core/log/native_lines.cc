#include "supervisor/core/log/native_lines.h"

#include <cstddef>

#include "supervisor/core/log/ascii.h"
#include "supervisor/core/log/native_message.h"

namespace berth::core {

std::optional<NativeLine> match_native_line(std::string_view message) {
  constexpr std::size_t kShortest = std::string_view("Aborted").size();
  if (message.size() < kShortest) return std::nullopt;
  if (is_worker_refusal(message)) return NativeLine{FailureClass::kLaunch, false};
  if (is_worker_shortage(message)) return NativeLine{FailureClass::kResource, false};
  if (is_abort(message)) return NativeLine{FailureClass::kCrash, false};
  const NativeMessage split = split_native_message(message);
  if (const auto runtime = class_of_runtime_error(split, message)) {
    return NativeLine{*runtime, false};
  }
  if (const auto model = class_of_model_error(split)) return NativeLine{*model, false};
  if (is_failed_allocation(split)) return NativeLine{FailureClass::kResource, true};
  if (is_failed_bind(split)) return NativeLine{FailureClass::kCrash, false};
  return std::nullopt;
}

bool continues_allocation(std::string_view line) {
  return contains_ignoring_case(line, "alloc");
}

bool retries_allocation(std::string_view line) {
  return contains_ignoring_case(line, "retrying");
}

}  // namespace berth::core
