#pragma once

#include <string>
#include <system_error>

namespace berth {

// "No such file or directory". Any thread, unlike strerror().
inline std::string errno_text(int error) {
  return std::generic_category().message(error);
}

}  // namespace berth
