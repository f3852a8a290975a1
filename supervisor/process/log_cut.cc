#include "supervisor/process/log_cut.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string_view>
#include <vector>

#include "common/errno_text.h"
#include "common/fd.h"
#include "supervisor/process/log_input.h"

namespace berth::process {
namespace {

constexpr std::string_view kMarkFront = "== berth cut ";
constexpr std::string_view kMarkBack = " bytes";
constexpr std::size_t kMarkLongest = 64;  // without the blanks behind it
// How far the end of a line is looked for. A longer one is no line to anybody (D2).
constexpr std::size_t kLineLongest = 65536;

struct Mark {
  std::uint64_t removed = 0;  // bytes of the log that stood before what follows it
  std::size_t length = 0;     // of the line, with its LF
};

// Held for a few milliseconds at a time, by nobody who is on the core strand.
std::shared_mutex& cut_mutex() {
  static std::shared_mutex mutex;
  return mutex;
}

std::optional<Mark> read_mark(int fd) {
  std::array<char, kMarkLongest> begin{};
  const ssize_t got = ::pread(fd, begin.data(), begin.size(), 0);
  if (got <= 0) return std::nullopt;
  std::string_view text(begin.data(), static_cast<std::size_t>(got));
  if (!text.starts_with(kMarkFront)) return std::nullopt;
  text.remove_prefix(kMarkFront.size());
  Mark mark;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mark.removed);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.starts_with(kMarkBack)) return std::nullopt;
  text.remove_prefix(kMarkBack.size());
  // Blanks up to the end of what was a line of the child's.
  const auto blanks = static_cast<std::uint64_t>(text.data() - begin.data());
  const auto rest = read_log(fd, blanks, kLineLongest + 1);
  if (!rest) return std::nullopt;
  const std::size_t line_end = rest->find_first_not_of(' ');
  if (line_end == std::string::npos || (*rest)[line_end] != '\n') return std::nullopt;
  mark.length = static_cast<std::size_t>(blanks) + line_end + 1;
  return mark;
}

std::uint64_t size_of(int fd) {
  const auto size = log_size(fd);
  return size ? *size : 0;
}

Status write_at(int fd, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail(Reason::kInternal, errno_text(errno));
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
    offset += static_cast<std::uint64_t>(wrote);
  }
  return {};
}

// Copies [from, the end of the file as it is now) to `to`. Gives the end.
Result<std::uint64_t> copy_forward(int fd, std::uint64_t from, std::uint64_t to) {
  std::vector<char> part(256UL * 1024UL);
  while (true) {
    const ssize_t got = ::pread(fd, part.data(), part.size(), static_cast<off_t>(from));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(Reason::kInternal, errno_text(errno));
    if (got == 0) return from;
    const std::string_view bytes(part.data(), static_cast<std::size_t>(got));
    if (auto wrote = write_at(fd, bytes, to); !wrote) return fail(std::move(wrote).error());
    from += bytes.size();
    to += bytes.size();
  }
}

// Length of what is at `place` up to and with the first LF behind `least` bytes; nothing where no
// line ends nearby.
std::optional<std::size_t> length_to_line_end(int fd, std::uint64_t place, std::size_t least) {
  const auto bytes = read_log(fd, place, kLineLongest);
  if (!bytes || bytes->size() <= least) return std::nullopt;
  const std::size_t end = bytes->find('\n', least);
  return end == std::string::npos ? std::nullopt : std::optional(end + 1);
}

std::string mark_text(std::uint64_t removed) {
  return std::string(kMarkFront) + std::to_string(removed) + std::string(kMarkBack);
}

std::uint64_t offset_behind(const std::optional<Mark>& mark, std::uint64_t place) {
  if (!mark) return place;
  return place <= mark->length ? mark->removed : place - mark->length + mark->removed;
}

std::uint64_t place_behind(const std::optional<Mark>& mark, std::uint64_t size,
                           std::uint64_t offset) {
  if (!mark) return offset <= size ? offset : 0;
  if (offset <= mark->removed) return std::min<std::uint64_t>(mark->length, size);
  return std::min(size, offset - mark->removed + mark->length);
}

// Whether the file system may know how to take out a part of a file. Asked with a range that none
// can take out, as it is no whole block: nothing is changed.
bool may_collapse(int fd) {
  return ::fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 1, 1) != 0 && errno == EINVAL;
}

// Takes [0, `from`) out of the file at once. The mark stands over the begin of what is kept, which
// is the rest of a line. False where that cannot be done; then nothing is changed. Errors: that
// line is lost, as it could not be written back.
Result<bool> collapse(int fd, const std::optional<Mark>& old_mark, std::uint64_t least_from) {
  if (!may_collapse(fd)) return false;
  struct stat info {};
  if (::fstat(fd, &info) != 0 || info.st_blksize <= 0) return false;
  const auto block = static_cast<std::uint64_t>(info.st_blksize);
  const std::uint64_t from = (least_from + block - 1) / block * block;
  if (from + kMarkLongest >= static_cast<std::uint64_t>(info.st_size)) return false;
  const auto length = length_to_line_end(fd, from, kMarkLongest);
  if (!length) return false;
  const auto line = read_log(fd, from, *length);
  if (!line || line->size() != *length) return false;
  std::string mark = mark_text(offset_behind(old_mark, from + *length));
  mark.resize(*length - 1, ' ');
  mark += '\n';
  if (write_at(fd, mark, from) &&
      ::fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, static_cast<off_t>(from)) == 0) {
    return true;
  }
  if (auto restored = write_at(fd, *line, from); !restored) {
    return fail(std::move(restored).error());
  }
  return false;
}

// Copies [from, the end) to `to`, and on while the child writes, but not for ever. Gives the end of
// what was copied.
Result<std::uint64_t> copy_all(int fd, std::uint64_t from, std::uint64_t to) {
  constexpr int kMostRounds = 8;
  std::uint64_t copied = from;
  for (int round = 0; round < kMostRounds; ++round) {
    const Result<std::uint64_t> end = copy_forward(fd, copied, to + (copied - from));
    if (!end) return end;
    if (*end == copied) break;
    copied = *end;
  }
  return copied;
}

// Copies what is kept to the begin and cuts the rest. Where that fails, the first line of the file
// is as it was: it claims no cut that was none.
Status copy_and_cut(int fd, const std::optional<Mark>& old_mark, std::uint64_t least_from) {
  const std::uint64_t from = least_from + length_to_line_end(fd, least_from, 0).value_or(0);
  std::string mark = mark_text(offset_behind(old_mark, from));
  // Never shorter than the old one, which has to stay whole until the copy is made.
  if (old_mark && mark.size() + 1 < old_mark->length) mark.resize(old_mark->length - 1, ' ');
  mark += '\n';
  const auto begin = read_log(fd, 0, mark.size());
  if (!begin) return fail(begin.error());
  const Result<std::uint64_t> end = copy_all(fd, from, mark.size());
  if (!end) return fail(end.error());
  const std::uint64_t size = mark.size() + (*end - from);
  Status cut = write_at(fd, mark, 0);
  if (cut && ::ftruncate(fd, static_cast<off_t>(size)) != 0) {
    cut = fail(Reason::kInternal, errno_text(errno));
  }
  // As good as it goes: the error is told in any case.
  if (!cut) static_cast<void>(write_at(fd, *begin, 0));
  return cut;
}

Result<LogCut> trim_opened(const UniqueFd& file, const std::string& name, std::uint64_t limit_bytes,
                           std::uint64_t keep_bytes) {
  if (!file) {
    return fail(errno == ENOENT ? Reason::kNotFound : Reason::kInternal,
                name + " cannot be opened: " + errno_text(errno) + ".");
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return fail(Reason::kInternal, name + " is not a regular file.");
  }
  // Twice as much and a mark, so that the copy never overlaps what it copies.
  const std::uint64_t limit = std::max(limit_bytes, 2 * keep_bytes + kMarkLongest);
  LogCut result;
  result.size_before = static_cast<std::uint64_t>(info.st_size);
  if (result.size_before <= limit) return result;

  const std::unique_lock alone(cut_mutex());
  // Somebody else may have cut it meanwhile.
  result.size_before = size_of(file.get());
  if (result.size_before <= limit) return result;
  const std::optional<Mark> mark = read_mark(file.get());
  const std::uint64_t from = result.size_before - keep_bytes;
  Result<bool> taken_out = collapse(file.get(), mark, from);
  Status cut = taken_out ? Status{} : Status(fail(std::move(taken_out).error()));
  if (taken_out && !*taken_out) cut = copy_and_cut(file.get(), mark, from);
  if (!cut) return fail(Reason::kInternal, name + " cannot be cut: " + cut.error().message + ".");
  result.cut = true;
  return result;
}

}  // namespace

Result<LogCut> trim_live(const std::string& path, std::uint64_t limit_bytes,
                         std::uint64_t keep_bytes) {
  // Whether it can be written to matters only where it has to be.
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
      static_cast<std::uint64_t>(info.st_size) <= limit_bytes) {
    return LogCut{false, static_cast<std::uint64_t>(info.st_size)};
  }
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return trim_opened(file, path, limit_bytes, keep_bytes);
}

Result<LogCut> trim_live(int fd, std::uint64_t limit_bytes, std::uint64_t keep_bytes) {
  if (size_of(fd) <= limit_bytes) return LogCut{false, size_of(fd)};
  const std::string itself = "/proc/self/fd/" + std::to_string(fd);
  const UniqueFd file(::open(itself.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  return trim_opened(file, "A worker's log", limit_bytes, keep_bytes);
}

std::uint64_t log_offset(int fd, std::uint64_t place) {
  const std::shared_lock uncut(cut_mutex());
  return offset_behind(read_mark(fd), place);
}

std::uint64_t log_end(int fd) {
  const std::shared_lock uncut(cut_mutex());
  return offset_behind(read_mark(fd), size_of(fd));
}

std::uint64_t log_place(int fd, std::uint64_t offset) {
  const std::shared_lock uncut(cut_mutex());
  return place_behind(read_mark(fd), size_of(fd), offset);
}

Result<LogPart> read_log_part(int fd, std::uint64_t offset, std::size_t most) {
  const std::shared_lock uncut(cut_mutex());
  const std::optional<Mark> mark = read_mark(fd);
  const std::uint64_t size = size_of(fd);
  const std::uint64_t place = place_behind(mark, size, offset);
  // What comes behind that size is read next time.
  auto bytes = read_log(fd, place, std::min<std::uint64_t>(most, size - place));
  if (!bytes) return fail(bytes.error());
  return LogPart{*std::move(bytes), offset_behind(mark, place), offset_behind(mark, size)};
}

}  // namespace berth::process
