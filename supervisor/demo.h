#pragma once

#include <string>

#include "common/result.h"

namespace berth {

// Makes DIR ready for `berthd --demo DIR`: the directory (0700), DIR/models with the small model
// `demo`, and a DIR/berth.toml to be edited. What is there already is left as it is. Errors:
// kInvalidArgument with the path and the cause.
Status prepare_demo(const std::string& dir);

}  // namespace berth
