#include "supervisor/memory/oom_kill.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>

#include "common/fd.h"
#include "supervisor/memory/proc_text.h"

namespace berth::memory {
namespace {

// PROC_PID_INIT_INO of include/linux/proc_ns.h: the first namespace of process numbers.
constexpr ino_t kFirstPidNamespace = 0xEFFFFFFC;
constexpr std::uint64_t kLookBackUs = 30'000'000;
constexpr int kLastLineMs = 20;
// Priority and facility are one number; the kernel's facility is 0, and no program can write it.
constexpr std::uint64_t kPriorities = 8;
constexpr std::size_t kMostRecords = 200'000;

bool sees_the_kernels_numbers() {
  struct stat info {};
  return ::stat("/proc/self/ns/pid", &info) == 0 && info.st_ino == kFirstPidNamespace;
}

std::uint64_t since_start_us() {
  constexpr std::uint64_t kMillion = 1'000'000;
  timespec now{};
  if (::clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 0;
  return static_cast<std::uint64_t>(now.tv_sec) * kMillion +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

// Reads what is there now.
bool told(int log, pid_t pid, std::uint64_t since_us) {
  std::array<char, 8192> buffer{};  // CONSOLE_EXT_LOG_MAX: no record is longer
  for (std::size_t i = 0; i < kMostRecords; ++i) {
    const ssize_t size = ::read(log, buffer.data(), buffer.size());
    // EPIPE: the oldest ones were overwritten meanwhile.
    if (size < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (size <= 0) return false;
    const std::string_view record(buffer.data(), static_cast<std::size_t>(size));
    if (tells_of_oom_kill(record, pid, since_us)) return true;
  }
  return false;
}

}  // namespace

bool tells_of_oom_kill(std::string_view record, pid_t pid, std::uint64_t since_us) {
  const auto priority = leading_number(record);
  const std::size_t head = record.find(';');
  if (!priority || *priority >= kPriorities || head == std::string_view::npos) return false;
  std::string_view time = record.substr(0, head);
  for (int commas = 0; commas < 2; ++commas) {
    const std::size_t comma = time.find(',');
    if (comma == std::string_view::npos) return false;
    time.remove_prefix(comma + 1);
  }
  const auto when = leading_number(time);
  if (!when || *when < since_us) return false;
  std::string_view text = record.substr(head + 1);
  if (!text.starts_with("Out of memory") && !text.starts_with("Memory cgroup out of memory")) {
    return false;
  }
  // The first one: behind it comes the program's name, which may be anything.
  constexpr std::string_view kKilled = ": Killed process ";
  const std::size_t killed = text.find(kKilled);
  if (killed == std::string_view::npos) return false;
  const auto number = leading_number(text.substr(killed + kKilled.size()));
  return pid > 0 && number && *number == static_cast<std::uint64_t>(pid);
}

bool kernel_killed_for_memory(pid_t pid) {
  if (!sees_the_kernels_numbers()) return false;
  const UniqueFd log(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!log) return false;
  const std::uint64_t now = since_start_us();
  const std::uint64_t since = now > kLookBackUs ? now - kLookBackUs : 0;
  if (told(log.get(), pid, since)) return true;
  // The kernel kills first and writes then.
  pollfd more{log.get(), POLLIN, 0};
  if (::poll(&more, 1, kLastLineMs) <= 0) return false;
  return told(log.get(), pid, since);
}

}  // namespace berth::memory
