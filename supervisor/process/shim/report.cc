#include "supervisor/process/shim/report.h"

#include <charconv>
#include <system_error>

namespace berth::process::shim {
namespace {

constexpr std::string_view kFailed = "failed ";

}  // namespace

std::string failed_line(int error) {
  return std::string(kFailed) + std::to_string(error) + "\n";
}

std::optional<int> error_of(std::string_view line) {
  if (!line.starts_with(kFailed)) return std::nullopt;
  line.remove_prefix(kFailed.size());
  int error = 0;
  const auto [end, bad] = std::from_chars(line.data(), line.data() + line.size(), error);
  if (bad != std::errc{} || end != line.data() + line.size() || error <= 0) return std::nullopt;
  return error;
}

}  // namespace berth::process::shim
