#pragma once

#include <string>
#include <string_view>

#include "common/result.h"
#include "supervisor/cli/options.h"

namespace berth::cli {

// Changes one setting by the words that a person typed; "default" unsets it. Errors:
// kInvalidArgument with the range, or the names there are.
Status change_setting(SamplingOptions& sampling, std::string_view name, std::string_view value);

// "temperature default, top_k 40, …"
std::string describe_settings(const SamplingOptions& sampling);

// Whether a value that was parsed already is in its range; NaN never is.
bool valid_temperature(float value);
bool valid_top_p(float value);

}  // namespace berth::cli
