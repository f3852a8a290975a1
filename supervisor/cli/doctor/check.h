#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::cli {

enum class Finding : std::uint8_t { kOk, kWarning, kError };

std::string_view finding_name(Finding finding);

// One thing that the doctor looked at.
struct Check {
  Finding finding = Finding::kOk;
  std::string what;    // a word or two: "worker", "disk of state_dir"
  std::string found;   // what it is
  std::string advice;  // what to do; empty where all is well
};

using Checks = std::vector<Check>;

inline Check ok(std::string what, std::string found) {
  return {Finding::kOk, std::move(what), std::move(found), {}};
}
inline Check warning(std::string what, std::string found, std::string advice) {
  return {Finding::kWarning, std::move(what), std::move(found), std::move(advice)};
}
inline Check error(std::string what, std::string found, std::string advice) {
  return {Finding::kError, std::move(what), std::move(found), std::move(advice)};
}

}  // namespace berth::cli
