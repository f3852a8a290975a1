#include "supervisor/memory/pressure_reading.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "common/kernel_file.h"
#include "supervisor/memory/proc_text.h"

namespace berth::memory {
namespace {

std::optional<double> avg10(std::string_view text, std::string_view line) {
  constexpr std::string_view kKey = "avg10=";
  const auto rest = line_of(text, line, ' ');
  if (!rest) return std::nullopt;
  const std::size_t at = rest->find(kKey);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view number = rest->substr(at + kKey.size());
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value < 0 || value > 100) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::uint64_t> count_of(std::string_view text, std::string_view key) {
  const auto rest = line_of(text, key, ' ');
  return rest ? leading_number(*rest) : std::nullopt;
}

}  // namespace

std::optional<StallShares> parse_pressure(std::string_view text) {
  const auto some = avg10(text, "some");
  const auto full = avg10(text, "full");
  if (!some || !full) return std::nullopt;
  return StallShares{*some, *full};
}

std::optional<StallShares> read_pressure() {
  const auto text = read_kernel_file("/proc/pressure/memory");
  return text ? parse_pressure(*text) : std::nullopt;
}

std::optional<CgroupEvents> parse_memory_events(std::string_view text) {
  const auto high = count_of(text, "high");
  const auto max = count_of(text, "max");
  if (!high || !max) return std::nullopt;
  return CgroupEvents{*high, *max, count_of(text, "oom_kill").value_or(0)};
}

std::optional<CgroupEvents> read_memory_events(const std::string& cgroup_directory) {
  const auto text = read_kernel_file(cgroup_directory + "/memory.events");
  return text ? parse_memory_events(*text) : std::nullopt;
}

std::optional<std::uint64_t> parse_own_memory(std::string_view status) {
  const auto anonymous = kib_field(status, "RssAnon");
  const auto shared = kib_field(status, "RssShmem");
  if (!anonymous || !shared) return std::nullopt;
  return *anonymous > UINT64_MAX - *shared ? UINT64_MAX : *anonymous + *shared;
}

std::optional<std::uint64_t> read_own_memory(pid_t pid) {
  const auto text = read_kernel_file("/proc/" + std::to_string(pid) + "/status");
  return text ? parse_own_memory(*text) : std::nullopt;
}

}  // namespace berth::memory
