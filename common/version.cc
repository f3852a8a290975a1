#include "common/version.h"

namespace berth {

// Both definitions come from CMake, for this file alone: nothing else is compiled anew with them.
constinit const std::string_view kVersion = BERTH_VERSION;
constinit const std::string_view kBuildId = BERTH_BUILD_ID;

}  // namespace berth
