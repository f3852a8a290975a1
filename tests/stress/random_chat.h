#pragma once

#include "berth/v1/inference.pb.h"
#include "tests/stress/chance.h"

namespace berth::stress {

// Messages of all roles with and without tools, tool_choice and variables for the template.
v1::ChatInput random_chat(Random& random);

// One thing in it is wrong: no JSON, other types, tools without names, a choice of nothing.
void spoil_chat(Random& random, v1::ChatInput& chat);

}  // namespace berth::stress
