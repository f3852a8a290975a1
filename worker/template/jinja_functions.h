#pragma once

#include <ctime>
#include <memory>
#include <minja/minja.hpp>

namespace berth::worker {

// Defines in `context` the filters and functions that minja lacks or has with other results than
// Jinja 2 (with the environment that models' templates are written for): tojson, length, trim,
// first, selectattr and others. `now` is what strftime_now() tells, in local time.
void define_jinja_functions(minja::Context& context, std::time_t now);

}  // namespace berth::worker
