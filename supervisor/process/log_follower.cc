#include "supervisor/process/log_follower.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "supervisor/process/log_cut.h"
#include "supervisor/process/log_input.h"

namespace berth::process {
namespace {

// Offset at which the last `lines` lines begin. Reads backwards, at most 64 MiB. By offsets, not by
// places in the file: those stay what they are when the file is cut meanwhile.
Result<std::uint64_t> begin_of_last_lines(int fd, std::uint32_t lines) {
  constexpr std::uint64_t kBlock = 64UL * 1024UL;
  constexpr std::uint64_t kFarthest = std::uint64_t{64} << 20U;
  const auto whole = read_log_part(fd, 0, 0);
  if (!whole) return fail(whole.error());
  const std::uint64_t size = whole->end;
  if (lines == 0) return size;
  const std::uint64_t stop = std::max(whole->offset, size > kFarthest ? size - kFarthest : 0);
  std::uint64_t found = 0;
  for (std::uint64_t end = size; end > stop;) {
    const std::uint64_t begin = end - std::min(kBlock, end - stop);
    const auto part = read_log_part(fd, begin, end - begin);
    if (!part) return fail(part.error());
    // Not `begin` where that was cut off meanwhile: then nothing is before it any more.
    const std::uint64_t from = part->offset;
    for (std::size_t i = part->bytes.size(); i > 0; --i) {
      // What is written meanwhile counts no more; the LF at the very end closes the last line.
      if (part->bytes[i - 1] != '\n' || from + i > end || from + i == size) continue;
      if (++found == lines) return from + i;
    }
    if (from != begin) return std::min(from, size);
    end = begin;
  }
  return stop;
}

}  // namespace

Result<LogFollower> LogFollower::open(const std::string& path, std::optional<std::uint32_t> lines,
                                      bool follow) {
  LogFollower follower(path);
  follower.follow_ = follow;
  // Before the file is looked at, so that nothing is missed in between.
  if (follow) follower.watch();
  if (auto opened = follower.open_file(); !opened) {
    if (follow && opened.error().reason == Reason::kNotFound) return follower;
    return fail(std::move(opened).error());
  }
  if (lines) {
    const auto begin = begin_of_last_lines(follower.file_.get(), *lines);
    if (!begin) return fail(begin.error());
    follower.offset_ = *begin;
  }
  return follower;
}

Result<std::string> LogFollower::read(std::size_t most) {
  if (inotify_) drain_log_events(inotify_.get());
  // Twice: at the end of a file that was replaced the next one begins.
  for (int file = 0; file < 2; ++file) {
    if (!file_) {
      auto opened = open_file();
      if (!opened && opened.error().reason == Reason::kNotFound) return std::string();
      if (!opened) return fail(std::move(opened).error());
    }
    const bool last_look = replaced();
    auto part = read_log_part(file_.get(), offset_, most);
    if (!part) return fail(part.error());
    offset_ = part->offset + part->bytes.size();
    if (!part->bytes.empty() || !last_look || !follow_) return std::move(part->bytes);
    file_.reset();
  }
  return std::string();
}

void LogFollower::watch() {
  inotify_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify_) return;
  // The directory tells of its files: also of one that does not exist yet, and after a rotation.
  const std::size_t slash = path_.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  constexpr std::uint32_t kEvents = IN_MODIFY | IN_CREATE | IN_MOVED_TO;
  if (::inotify_add_watch(inotify_.get(), directory.c_str(), kEvents) < 0) inotify_.reset();
}

Status LogFollower::open_file() {
  auto file = open_log_input(path_);
  if (!file) return fail(std::move(file).error());
  file_ = std::move(*file);
  offset_ = 0;
  return {};
}

bool LogFollower::replaced() const {
  struct stat here {};
  struct stat there {};
  if (::fstat(file_.get(), &here) != 0) return false;
  if (::lstat(path_.c_str(), &there) != 0) return true;
  return here.st_ino != there.st_ino || here.st_dev != there.st_dev;
}

}  // namespace berth::process
