#include "common/keys/key_file.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <system_error>
#include <utility>

#include "common/fd.h"
#include "common/text.h"

namespace berth::keys {
namespace {

constexpr std::chrono::seconds kLockWait{10};
constexpr int kLockPauseMs = 20;
constexpr mode_t kOwnerOnly = 0600;
constexpr mode_t kGroupToo = 0640;
constexpr mode_t kPermissions = 07777;
constexpr std::size_t kNameBytes = 1024;

std::string shown(const std::string& path) {
  return printable_line(path, kNameBytes);
}

tl::unexpected<Error> failed(const std::string& path, std::string_view what, int error) {
  const bool denied = error == EACCES || error == EPERM || error == EROFS;
  const Reason reason = error == ENOENT ? Reason::kNotFound
                        : denied        ? Reason::kPermissionDenied
                                        : Reason::kInvalidArgument;
  return fail(reason, shown(path) + ": the key file cannot be " + std::string(what) + ": " +
                          std::system_category().message(error) + ".");
}

tl::unexpected<Error> refused(const std::string& path, std::string_view why) {
  return fail(Reason::kInvalidArgument, shown(path) + ": " + std::string(why));
}

Result<std::string> read_text(const std::string& path, int fd) {
  // One byte more than allowed, so that a file that is too large is seen to be.
  std::string text(KeyList::kMaxBytes + 1, '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got =
        ::pread(fd, text.data() + filled, text.size() - filled, static_cast<off_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(path, "read", errno);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  if (filled > KeyList::kMaxBytes) {
    return refused(path, "the key file is larger than the " + std::to_string(KeyList::kMaxBytes) +
                             " bytes that it may have.");
  }
  text.resize(filled);
  return text;
}

Result<KeyFile> read_open(const std::string& path, int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return failed(path, "examined", errno);
  if (!S_ISREG(info.st_mode)) return refused(path, "the key file is not a regular file.");
  if ((info.st_mode & S_IWOTH) != 0) {
    return refused(path,
                   "everybody may write to the key file, and so make himself an admin: run "
                   "`chmod o-w` on it, and look at its keys.");
  }
  const Result<std::string> text = read_text(path, fd);
  if (!text) return fail(text.error());
  auto list = KeyList::parse(*text);
  if (!list) {
    const ListProblem& first = list.error().front();
    const std::size_t more = list.error().size() - 1;
    return fail(Reason::kInvalidArgument,
                shown(path) + ":" + std::to_string(first.line) + ": " + first.message +
                    (more == 0 ? "." : " (and " + std::to_string(more) + " more lines)."));
  }
  KeyFile file{*std::move(list)};
  if ((info.st_mode & S_IROTH) != 0) {
    file.warning = shown(path) +
                   ": everybody can read names and roles of the keys; run `chmod "
                   "o-r` on it.";
  }
  return file;
}

// Where a new file must be readable for the service, though root makes it.
gid_t group_of_new_file() {
  if (::geteuid() != 0) return static_cast<gid_t>(-1);
  const group* service = ::getgrnam("berth");  // NOLINT(concurrency-mt-unsafe): a command's thread
  return service == nullptr ? static_cast<gid_t>(-1) : service->gr_gid;
}

// The file, made where there is none; null where it was neither there nor to be made, which passes.
Result<UniqueFd> open_or_make(const std::string& path, bool create) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd) return fd;
  if (errno != ENOENT || !create) {
    return failed(path, create ? "opened or made" : "opened", errno);
  }
  fd.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kOwnerOnly));
  if (!fd && errno == EEXIST) {
    struct stat link {};
    if (::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode)) {
      return refused(path, "the key file is a link to nothing: make its target, or remove it.");
    }
    return fd;
  }
  if (!fd) return failed(path, "made", errno);
  const gid_t group = group_of_new_file();
  if (group != static_cast<gid_t>(-1) && ::fchown(fd.get(), static_cast<uid_t>(-1), group) == 0 &&
      ::fchmod(fd.get(), kGroupToo) != 0) {
    return failed(path, "made", errno);
  }
  return fd;
}

// The file, locked, and surely the one that has the name now. `path` has no links in it.
Result<UniqueFd> open_locked(const std::string& path, bool create) {
  const auto until = std::chrono::steady_clock::now() + kLockWait;
  while (true) {
    Result<UniqueFd> fd = open_or_make(path, create);
    if (!fd) return fd;
    if (!*fd) {
      // Somebody else made it at this moment.
    } else if (::flock(fd->get(), LOCK_EX | LOCK_NB) == 0) {
      struct stat held {};
      struct stat named {};
      if (::fstat(fd->get(), &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
          held.st_dev == named.st_dev && held.st_ino == named.st_ino) {
        return fd;
      }
    } else if (errno != EWOULDBLOCK && errno != EINTR) {
      return failed(path, "locked", errno);
    }
    if (std::chrono::steady_clock::now() >= until) {
      return fail(Reason::kConflict,
                  shown(path) + ": somebody else is changing the key file; try again.");
    }
    ::poll(nullptr, 0, kLockPauseMs);  // no event tells that a lock is free
  }
}

// A file that is not wanted goes with its owner.
class Scratch {
 public:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  void keep() { path_.clear(); }

 private:
  std::string path_;
};

Status write_all(const std::string& path, int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed(path, "written", errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(fd) == 0 ? Status() : Status(failed(path, "written", errno));
}

Status replace(const std::string& path, int old, const std::string& text) {
  struct stat info {};
  if (::fstat(old, &info) != 0) return failed(path, "examined", errno);
  std::string name = path + ".XXXXXX";
  const UniqueFd fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd) return failed(path, "replaced", errno);
  Scratch scratch(name);
  struct stat mine {};
  if (::fstat(fd.get(), &mine) != 0) return failed(path, "replaced", errno);
  if ((mine.st_uid != info.st_uid || mine.st_gid != info.st_gid) &&
      ::fchown(fd.get(), info.st_uid, info.st_gid) != 0) {
    return fail(Reason::kPermissionDenied,
                shown(path) +
                    ": the key file belongs to somebody else, whose it must stay: do "
                    "this as its owner, or as root.");
  }
  if (::fchmod(fd.get(), info.st_mode & kPermissions) != 0) return failed(path, "replaced", errno);
  if (Status written = write_all(path, fd.get(), text); !written) return written;
  if (::rename(name.c_str(), path.c_str()) != 0) return failed(path, "replaced", errno);
  scratch.keep();
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd dir(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir) ::fsync(dir.get());
  return {};
}

// A link stays what it is: the file behind it is replaced.
std::string resolved(const std::string& path) {
  char* const real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string whole(real);
  ::free(real);  // NOLINT: realpath's own
  return whole;
}

}  // namespace

Result<KeyFile> read_key_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return failed(path, "opened", errno);
  return read_open(path, fd.get());
}

Status change_key_file(const std::string& path, bool create,
                       const std::function<Status(KeyList&)>& change) {
  const std::string real = resolved(path);
  const Result<UniqueFd> fd = open_locked(real, create);
  if (!fd) return fail(fd.error());
  Result<KeyFile> file = read_open(real, fd->get());
  if (!file) return fail(file.error());
  if (Status changed = change(file->list); !changed) return changed;
  return replace(real, fd->get(), file->list.text());
}

std::string note_on_readers(const std::string& path) {
  struct stat info {};
  if (::geteuid() != 0 || ::stat(path.c_str(), &info) != 0) return {};
  if (info.st_uid != 0 || (info.st_mode & S_IROTH) != 0) return {};
  const gid_t group = group_of_new_file();
  const bool grouped = (info.st_mode & S_IRGRP) != 0;
  if (grouped && (info.st_gid == group || info.st_gid != 0)) return {};
  const std::string only_root = shown(path) + ": only root can read the key file";
  if (group == static_cast<gid_t>(-1)) {
    return only_root +
           ": where berthd runs as somebody else, give it to his group, and run `chmod "
           "0640` on it.";
  }
  return only_root +
         ", and berthd runs as berth where it is installed: run `chgrp berth` and "
         "`chmod 0640` on it.";
}

}  // namespace berth::keys
