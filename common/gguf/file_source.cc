#include "common/gguf/file_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "common/text.h"

namespace berth::gguf {
namespace {

const char* kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a directory";
    case S_IFIFO:
      return "a named pipe";
    case S_IFSOCK:
      return "a socket";
    case S_IFCHR:
    case S_IFBLK:
      return "a device";
    default:
      return "no regular file";
  }
}

tl::unexpected<Error> cannot_open(const std::string& path, int error) {
  const std::string name = shown_file_name(path);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return fail(Reason::kNotFound, name + ": there is no such file");
    case EACCES:
    case EPERM:
      return fail(Reason::kPermissionDenied, name + ": no permission to read the file");
    default:
      return fail(Reason::kInvalidArgument,
                  name + ": cannot be opened: " + std::system_category().message(error));
  }
}

tl::unexpected<Error> not_regular(const std::string& path, mode_t mode) {
  return fail(Reason::kInvalidArgument,
              shown_file_name(path) + ": is " + kind_of(mode) + ", not a model file");
}

}  // namespace

std::string shown_file_name(const std::string& path) {
  const std::size_t slash = path.find_last_of('/', path.size() > 1 ? path.size() - 2 : 0);
  std::string name = printable_line(
      slash == std::string::npos ? path : std::string_view(path).substr(slash + 1), 255);
  return name.empty() ? "(no name)" : name;
}

Result<FileSource> FileSource::open(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return fail(Reason::kInvalidArgument, shown_file_name(path) + ": is not a path");
  }
  // Opening a pipe would already be noticed by its writer.
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return cannot_open(path, errno);
  if (!S_ISREG(info.st_mode)) return not_regular(path, info.st_mode);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return cannot_open(path, errno);
  if (::fstat(fd.get(), &info) != 0) return cannot_open(path, errno);
  if (!S_ISREG(info.st_mode)) return not_regular(path, info.st_mode);
  const std::int64_t modified_ms =
      std::int64_t{info.st_mtim.tv_sec} * 1000 + info.st_mtim.tv_nsec / 1'000'000;
  return FileSource(std::move(fd), static_cast<std::uint64_t>(info.st_size), modified_ms);
}

std::ptrdiff_t FileSource::read_at(void* out, std::size_t count, std::uint64_t offset) {
  while (true) {
    const ssize_t got = ::pread(fd_.get(), out, count, static_cast<off_t>(offset));
    if (got >= 0) return got;
    if (errno != EINTR) return -errno;
  }
}

}  // namespace berth::gguf
