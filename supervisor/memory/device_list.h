#pragma once

#include <string_view>
#include <vector>

#include "common/result.h"
#include "supervisor/core/memory/domain_table.h"

namespace berth::memory {

// The devices of the JSON document that `berth-worker --devices` prints, in its order, at most 64
// of them. Errors: kInternal, what of it is not as expected.
Result<std::vector<core::ListedDevice>> parse_device_list(std::string_view json);

// The same of all that the worker printed: its log and, on a line of its own, the document. Errors:
// kInternal.
Result<std::vector<core::ListedDevice>> find_device_list(std::string_view output);

}  // namespace berth::memory
