#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "common/result.h"
#include "worker/template/input_bounds.h"

namespace berth::worker {

using Json = nlohmann::ordered_json;

// Parses an array or an object; `what` names it in messages ("The messages"). Deep nesting is
// refused, because values are copied recursively later.
// Errors: kInvalidArgument for `param`, says which bound is passed or why it is not valid.
Result<Json> parse_array(std::string_view text, std::string_view param, std::string_view what);
Result<Json> parse_object(std::string_view text, std::string_view param, std::string_view what);

}  // namespace berth::worker
