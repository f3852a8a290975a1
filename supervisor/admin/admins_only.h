#pragma once

#include <string>

#include "common/result.h"

namespace berth::admin {

inline Error admins_only(const std::string& what) {
  return {Reason::kPermissionDenied, "Only an admin may " + what + "."};
}

}  // namespace berth::admin
