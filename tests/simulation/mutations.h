#pragma once

#include <string_view>

namespace berth::sim {

// Switches on the planted defect of that name (core/mutation.h) in this process; "none" for none.
// False where there is no such name. Test build only.
bool plant(std::string_view name);

}  // namespace berth::sim
