#include "supervisor/process/log_cut.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "common/fd.h"
#include "supervisor/process/system_error.h"

namespace berth::process {
namespace {

constexpr std::string_view kMarkFront = "== berth cut ";
constexpr std::string_view kMarkBack = " bytes\n";
constexpr std::size_t kMarkLongest = 64;

struct Mark {
  std::uint64_t removed = 0;  // bytes that stood before what is kept
  std::size_t length = 0;     // of the line
};

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
  mark.length = static_cast<std::size_t>(text.data() - begin.data());
  return mark;
}

std::optional<std::uint64_t> size_of(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(info.st_size);
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

// The begin of the first line at or after `offset`, or `offset` where no line begins nearby.
std::uint64_t next_line(int fd, std::uint64_t offset) {
  std::array<char, 8192> part{};
  const ssize_t got = ::pread(fd, part.data(), part.size(), static_cast<off_t>(offset));
  if (got <= 0) return offset;
  const std::size_t end = std::string_view(part.data(), static_cast<std::size_t>(got)).find('\n');
  return end == std::string_view::npos ? offset : offset + end + 1;
}

}  // namespace

Result<LogCut> trim_live(const std::string& path, std::uint64_t limit_bytes,
                         std::uint64_t keep_bytes) {
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) {
    return fail(errno == ENOENT ? Reason::kNotFound : Reason::kInternal,
                path + " cannot be opened: " + errno_text(errno) + ".");
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return fail(Reason::kInternal, path + " is not a regular file.");
  }
  LogCut result;
  result.size_before = static_cast<std::uint64_t>(info.st_size);
  // Twice as much and a mark, so that the copy never overlaps what it copies.
  if (result.size_before <= std::max(limit_bytes, 2 * keep_bytes + kMarkLongest)) return result;

  const std::uint64_t from = next_line(file.get(), result.size_before - keep_bytes);
  const std::string mark = std::string(kMarkFront) + std::to_string(from) + std::string(kMarkBack);
  Status wrote = write_at(file.get(), mark, 0);
  Result<std::uint64_t> end = from;
  std::uint64_t copied = from;
  // The child goes on writing: copy until nothing new came, but not for ever.
  constexpr int kMostRounds = 8;
  for (int round = 0; wrote && end && round < kMostRounds; ++round) {
    end = copy_forward(file.get(), copied, mark.size() + (copied - from));
    if (!end || *end == copied) break;
    copied = *end;
  }
  if (!wrote || !end) {
    const Error& error = wrote ? end.error() : wrote.error();
    return fail(Reason::kInternal, path + " cannot be cut: " + error.message + ".");
  }
  const std::uint64_t size = mark.size() + (copied - from);
  if (::ftruncate(file.get(), static_cast<off_t>(size)) != 0) {
    return fail(Reason::kInternal, path + " cannot be cut: " + errno_text(errno) + ".");
  }
  result.cut = true;
  return result;
}

std::uint64_t place_after_cut(int fd, std::uint64_t offset) {
  const auto size = size_of(fd);
  if (!size) return 0;
  if (offset <= *size) return offset;
  const auto mark = read_mark(fd);
  // Emptied by somebody else: everything that is there is new.
  if (!mark) return 0;
  if (offset < mark->removed) return mark->length;
  return std::min(*size, offset - mark->removed + mark->length);
}

}  // namespace berth::process
