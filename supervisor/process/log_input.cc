#include "supervisor/process/log_input.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/errno_text.h"

namespace berth::process {

Result<UniqueFd> open_log_input(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) {
    return fail(errno == ENOENT ? Reason::kNotFound : Reason::kInternal,
                path + " cannot be opened: " + errno_text(errno) + ".");
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return fail(Reason::kInternal, path + " is not a regular file.");
  }
  return file;
}

Result<std::uint64_t> log_size(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return fail(Reason::kInternal, "fstat: " + errno_text(errno));
  return static_cast<std::uint64_t>(info.st_size);
}

Result<std::string> read_log(int fd, std::uint64_t offset, std::size_t most) {
  std::string bytes(most, '\0');
  std::size_t filled = 0;
  while (filled < most) {
    const ssize_t got =
        ::pread(fd, bytes.data() + filled, most - filled, static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(Reason::kInternal, "read: " + errno_text(errno));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

void drain_log_events(int inotify) {
  alignas(inotify_event) std::array<char, 4096> events{};
  // Bounded: if more come meanwhile, the descriptor stays readable.
  constexpr int kMostReads = 64;
  for (int i = 0; i < kMostReads; ++i) {
    if (::read(inotify, events.data(), events.size()) <= 0) return;
  }
}

}  // namespace berth::process
