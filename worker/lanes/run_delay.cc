#include "worker/lanes/run_delay.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/fd.h"

namespace berth::worker {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

// The second of the line's three numbers, in nanoseconds.
std::optional<std::int64_t> second_number(std::string_view line) {
  const auto space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  std::int64_t value = 0;
  const auto parsed = std::from_chars(line.data() + space + 1, line.data() + line.size(), value);
  return parsed.ec == std::errc{} ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<Duration> run_delay() {
  const std::unique_ptr<DIR, CloseFolder> folder(opendir("/proc/self/task"));
  if (!folder) return std::nullopt;
  std::optional<Duration> sum;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): only this thread reads this folder
  while (const auto* const entry = readdir(folder.get())) {
    if (entry->d_name[0] == '.') continue;
    const auto path = std::string(entry->d_name) + "/schedstat";
    const UniqueFd file(openat(dirfd(folder.get()), path.c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, 128> text{};
    const auto size = file ? read(file.get(), text.data(), text.size()) : -1;
    if (size <= 0) continue;  // the thread has ended
    const auto delay = second_number({text.data(), static_cast<std::size_t>(size)});
    if (!delay) return std::nullopt;
    sum = sum.value_or(Duration{}) + std::chrono::nanoseconds(*delay);
  }
  return sum;
}

}  // namespace berth::worker
