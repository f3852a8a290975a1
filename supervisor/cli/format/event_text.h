#pragma once

#include <string>

#include "berth/v1/admin.pb.h"

namespace berth::cli {

// One event in the form in which the daemon writes it: time, level, and the event as logfmt. One
// line without a newline; `colours` for the level.
std::string event_line(const v1::Event& event, bool colours);

}  // namespace berth::cli
