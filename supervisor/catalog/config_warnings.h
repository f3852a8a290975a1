#pragma once

#include <string>
#include <vector>

#include "supervisor/catalog/config.h"

namespace berth::catalog {

// What a valid configuration may not have meant, for an operator, one sentence each: files and
// directories that it names and that are not there (they may come yet), models that cannot be used,
// files that a section takes away from the name they would have. Looks at the model directories
// like scan(): blocks on the file system. At most kMostWarnings; nothing fails.
std::vector<std::string> config_warnings(const Config& config);

inline constexpr std::size_t kMostWarnings = 100;

}  // namespace berth::catalog
