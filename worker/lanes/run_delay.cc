#include "worker/lanes/run_delay.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

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

class RunDelayReader {
 public:
  std::optional<Duration> read() {
    if (!folder_) return std::nullopt;
    rewinddir(folder_.get());
    std::optional<Duration> sum;
    Files met;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): only this thread reads this folder
    while (const auto* const entry = readdir(folder_.get())) {
      if (entry->d_name[0] == '.') continue;
      const std::string thread = entry->d_name;
      auto file = take(thread);
      std::array<char, 128> text{};
      const auto size = file ? pread(file.get(), text.data(), text.size(), 0) : -1;
      if (size <= 0) continue;  // the thread has ended, or another one has its number
      const auto delay = second_number({text.data(), static_cast<std::size_t>(size)});
      if (!delay) return std::nullopt;
      sum = sum.value_or(Duration{}) + std::chrono::nanoseconds(*delay);
      met.emplace(thread, std::move(file));
    }
    files_ = std::move(met);  // those of threads that have ended are closed
    return sum;
  }

 private:
  using Files = std::map<std::string, UniqueFd, std::less<>>;

  UniqueFd take(const std::string& thread) {
    if (const auto known = files_.find(thread); known != files_.end()) {
      return std::move(known->second);
    }
    const auto path = thread + "/schedstat";
    return UniqueFd(openat(dirfd(folder_.get()), path.c_str(), O_RDONLY | O_CLOEXEC));
  }

  std::unique_ptr<DIR, CloseFolder> folder_{opendir("/proc/self/task")};
  Files files_;  // by the thread's number
};

}  // namespace

std::function<std::optional<Duration>()> run_delay_reader() {
  return [reader = std::make_shared<RunDelayReader>()] { return reader->read(); };
}

}  // namespace berth::worker
