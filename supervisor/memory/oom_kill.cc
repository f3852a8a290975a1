#include "supervisor/memory/oom_kill.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "supervisor/memory/proc_text.h"

namespace berth::memory {
namespace {

// PROC_PID_INIT_INO of include/linux/proc_ns.h: the first namespace of process numbers.
constexpr ino_t kFirstPidNamespace = 0xEFFFFFFC;
constexpr int kLastLineMs = 20;
// Priority and facility are one number; the kernel's facility is 0, and no program can write it.
constexpr std::uint64_t kPriorities = 8;
constexpr std::size_t kMostRecords = 200'000;

bool sees_the_kernels_numbers() {
  struct stat info {};
  return ::stat("/proc/self/ns/pid", &info) == 0 && info.st_ino == kFirstPidNamespace;
}

// Reads what is there now.
bool told(int log, const std::vector<pid_t>& pids) {
  std::array<char, 8192> buffer{};  // CONSOLE_EXT_LOG_MAX: no record is longer
  for (std::size_t i = 0; i < kMostRecords; ++i) {
    const ssize_t size = ::read(log, buffer.data(), buffer.size());
    // EPIPE: the oldest ones were overwritten meanwhile; what is left comes next.
    if (size < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (size <= 0) return false;
    const std::string_view record(buffer.data(), static_cast<std::size_t>(size));
    const auto of = [record](pid_t pid) { return tells_of_oom_kill(record, pid); };
    if (std::ranges::any_of(pids, of)) return true;
  }
  return false;
}

}  // namespace

bool tells_of_oom_kill(std::string_view record, pid_t pid) {
  const auto priority = leading_number(record);
  const std::size_t head = record.find(';');
  if (!priority || *priority >= kPriorities || head == std::string_view::npos) return false;
  const std::string_view fields = record.substr(0, head);
  if (std::ranges::count(fields, ',') < 2) return false;
  const std::string_view text = record.substr(head + 1);
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

std::shared_ptr<const KernelLogPlace> KernelLogPlace::newest() {
  if (!sees_the_kernels_numbers()) return nullptr;
  UniqueFd log(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  // Kernel: Documentation/ABI/testing/dev-kmsg: behind the last record that is there.
  if (!log || ::lseek(log.get(), 0, SEEK_END) < 0) return nullptr;
  return std::make_shared<const KernelLogPlace>(std::move(log));
}

bool KernelLogPlace::tells_of_kill(const std::vector<pid_t>& pids) const {
  if (told(log_.get(), pids)) return true;
  // The kernel kills first and writes then.
  pollfd more{log_.get(), POLLIN, 0};
  if (::poll(&more, 1, kLastLineMs) <= 0) return false;
  return told(log_.get(), pids);
}

void KernelLogPlaces::put(pid_t pid, std::shared_ptr<const KernelLogPlace> place,
                          const std::vector<pid_t>& children) {
  // The number is another process's now.
  static_cast<void>(take(pid));
  if (!place) return;
  Noted noted{std::move(place), {pid}};
  const auto most = static_cast<std::ptrdiff_t>(std::min(children.size(), kMostChildren));
  noted.pids.insert(noted.pids.end(), children.begin(), children.begin() + most);
  places_.emplace_back(pid, std::move(noted));
  const auto ended = [this](const Entry& entry) { return !lives_(entry.first); };
  if (std::ranges::count_if(places_, ended) > static_cast<std::ptrdiff_t>(kMostEnded)) {
    places_.erase(std::ranges::find_if(places_, ended));
  }
}

KernelLogPlaces::Noted KernelLogPlaces::take(pid_t pid) {
  const auto at = std::ranges::find(places_, pid, &Entry::first);
  if (at == places_.end()) return {};
  Noted noted = std::move(at->second);
  places_.erase(at);
  return noted;
}

}  // namespace berth::memory
