#include "supervisor/cli/doctor/machine.h"

#include <sched.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "common/kernel_file.h"
#include "common/units.h"
#include "common/wall_time.h"
#include "supervisor/cli/environment.h"
#include "supervisor/cli/format/text.h"

namespace berth::cli {
namespace {

constexpr std::uint64_t kLittleMemory = std::uint64_t{2} << 30U;

Check check_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const bool known = ::sched_getaffinity(0, sizeof set, &set) == 0;
  const auto count = static_cast<std::uint64_t>(known ? CPU_COUNT(&set) : 1);
  const std::string found = counted(count, "processor") + " to run on";
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return ok("processors", found + ", AVX-512");
  if (__builtin_cpu_supports("avx2")) return ok("processors", found + ", AVX2");
  const bool avx = __builtin_cpu_supports("avx") != 0;
  return warning("processors", found + (avx ? ", AVX" : ", no AVX"),
                 "models run slowly without AVX2; a virtual machine may hide it");
#else
  return ok("processors", found);
#endif
}

Check check_memory() {
  const std::string meminfo = read_kernel_file("/proc/meminfo").value_or(std::string());
  const auto total = meminfo_bytes(meminfo, "MemTotal");
  const auto available = meminfo_bytes(meminfo, "MemAvailable");
  if (!total || !available) {
    return warning("memory", "cannot be read from /proc/meminfo", "is /proc mounted?");
  }
  const std::string found = format_bytes(*available) + " available of " + format_bytes(*total);
  if (*available < kLittleMemory) {
    return warning("memory", found, "only small models will fit: end other programs");
  }
  return ok("memory", found);
}

bool clock_synchronised() {
  timex state{};
  const int result = ::adjtimex(&state);
  return result >= 0 && result != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
}

// What lies in `folder` under names of `prefix` and a number, in order.
std::vector<std::string> numbered_paths(const std::string& folder, std::string_view prefix) {
  std::vector<std::string> paths;
  std::error_code none;
  for (std::filesystem::directory_iterator entry(folder, none), end; !none && entry != end;
       entry.increment(none)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix) || name.size() == prefix.size()) continue;
    if (name.find_first_not_of("0123456789", prefix.size()) != std::string::npos) continue;
    paths.push_back(entry->path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void check_devices(Checks& checks) {
  std::vector<std::string> paths = numbered_paths("/dev", "nvidia");
  const std::vector<std::string> render = numbered_paths("/dev/dri", "renderD");
  paths.insert(paths.end(), render.begin(), render.end());
  if (paths.empty()) {
    checks.push_back(ok("devices", "no GPU: models run on the processors"));
    return;
  }
  for (const std::string& path : paths) {
    if (::access(path.c_str(), R_OK | W_OK) == 0) {
      checks.push_back(ok("devices", path));
    } else {
      checks.push_back(warning("devices", path + " may not be used by this user",
                               "does the daemon's user belong to the groups video and render?"));
    }
  }
}

}  // namespace

std::optional<std::uint64_t> meminfo_bytes(std::string_view meminfo, std::string_view field) {
  while (!meminfo.empty()) {
    const std::size_t end = std::min(meminfo.find('\n'), meminfo.size());
    std::string_view line = meminfo.substr(0, end);
    meminfo.remove_prefix(std::min(meminfo.size(), end + 1));
    if (!line.starts_with(field) || line.substr(field.size(), 1) != ":") continue;
    line.remove_prefix(field.size() + 1);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    std::uint64_t kibibytes = 0;
    const auto [at, error] = std::from_chars(line.data(), line.data() + line.size(), kibibytes);
    if (error != std::errc()) return std::nullopt;
    return kibibytes * 1024;
  }
  return std::nullopt;
}

Check judge_clock(WallTime now, bool synchronised) {
  using std::chrono::sys_days;
  using namespace std::chrono_literals;
  const std::string found = format_utc(now);
  if (now < sys_days(2025y / 1 / 1) || now >= sys_days(2100y / 1 / 1)) {
    return error("clock", found + " cannot be right", "set it: timedatectl, or hwclock");
  }
  if (!synchronised) {
    return warning("clock", found + ", not synchronised",
                   "ages in records may be wrong: is systemd-timesyncd or chrony running?");
  }
  return ok("clock", found + ", synchronised");
}

Checks check_machine(WallTime now) {
  Checks checks;
  checks.push_back(check_processors());
  checks.push_back(check_memory());
  checks.push_back(judge_clock(now, clock_synchronised()));
  check_devices(checks);
  return checks;
}

}  // namespace berth::cli
