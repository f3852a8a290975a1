#include "supervisor/catalog/config_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/errno_text.h"
#include "common/fd.h"
#include "supervisor/catalog/toml_document.h"

namespace berth::catalog {
namespace {

tl::unexpected<std::string> wrong(std::string message) {
  return tl::unexpected<std::string>(std::move(message));
}

}  // namespace

tl::expected<std::string, std::string> read_config_file(const std::string& path) {
  if (path.empty()) return wrong("no file is named");
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) {
    const int error = errno;
    if (error == ENOENT) return wrong("there is no such file");
    if (error == EACCES) {
      return wrong("the file cannot be read: permission denied; make it readable for the user " +
                   std::string("that berthd runs as"));
    }
    return wrong("the file cannot be opened: " + errno_text(error));
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    return wrong("the file cannot be examined: " + errno_text(errno));
  }
  if (S_ISDIR(info.st_mode)) return wrong("this is a directory; name a file");
  if (!S_ISREG(info.st_mode)) return wrong("this is not a regular file");

  // One byte more than allowed, so that a file that is too large is seen to be.
  std::string text(kMaxConfigBytes + 1, '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return wrong("the file cannot be read: " + errno_text(errno));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  if (filled > kMaxConfigBytes) {
    return wrong("the file is larger than the " + std::to_string(kMaxConfigBytes) +
                 " bytes that a configuration may have");
  }
  text.resize(filled);
  text.shrink_to_fit();
  return text;
}

bool exists(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

}  // namespace berth::catalog
