#pragma once

#include <string_view>

namespace berth {

// "0.1.0": of the release.
extern const std::string_view kVersion;  // NOLINT(readability-identifier-naming)
// What exactly was built: `git describe` of the sources when the build was configured, such as
// "0.1.0-12-g1a2b3c4d" or "…-dirty"; outside a clone the version.
extern const std::string_view kBuildId;  // NOLINT(readability-identifier-naming)

}  // namespace berth
