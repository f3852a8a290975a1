#pragma once

#include <string>
#include <string_view>

#include "common/result.h"

namespace berth::worker {

// The same error about a field of the request.
Error about(const Error& error, std::string param);

// "sampling.top_p must be above 0 and at most 1, not 1.5."
tl::unexpected<Error> out_of_range(const std::string& param, std::string_view range,
                                   std::string_view value);

// The shortest text that stands for this number; "not a number", "infinity", "-infinity".
std::string number_text(float number);

}  // namespace berth::worker
