#pragma once

#include <string>

namespace berth::worker {

// "call_" and 24 random letters and digits: no two calls of any answers share an id. Any thread.
std::string random_tool_call_id();

}  // namespace berth::worker
