#include "worker/service/listen_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace berth::worker {
namespace {

constexpr int kBacklog = 64;

// Whether the same may work in a while: something is used up, or a disk stumbled.
bool passes(int number) {
  switch (number) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case EAGAIN:
    case ENOSPC:
    case EDQUOT:
    case EIO:
    case ESTALE:
      return true;
    default:
      return false;
  }
}

tl::unexpected<Error> system_error(const std::string& step) {
  const int number = errno;
  return fail(passes(number) ? Reason::kNoRoom : Reason::kInternal,
              step + ": " + std::generic_category().message(number));
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());  // NUL: the rest is zero
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

UniqueFd new_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

std::string directory_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Opens the directory, and locks it against another worker that starts in it at the same time.
Result<UniqueFd> private_directory(const std::string& directory) {
  if (::mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return system_error("The socket's directory " + directory + " cannot be made");
  }
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return system_error("The socket's directory " + directory + " cannot be opened");
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return system_error("fstat " + directory);
  if (status.st_uid != ::geteuid() || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return fail(Reason::kPermissionDenied, "The socket's directory " + directory +
                                               " must belong to this user and have mode 0700.");
  }
  if (::flock(fd.get(), LOCK_EX) != 0) return system_error("flock " + directory);
  return fd;
}

// Removes a socket that a dead process left.
Status clear_name(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return system_error("The socket " + path + " cannot be looked at");
  }
  if (!S_ISSOCK(status.st_mode)) {
    return fail(Reason::kConflict, path + " exists and is not a socket; it is left as it is.");
  }
  const auto probe = new_socket();
  if (!probe) return system_error("socket");
  const auto address = address_of(path);
  if (::connect(probe.get(), generic(address), sizeof address) == 0 || errno == EAGAIN) {
    return fail(Reason::kConflict, "Another process listens on " + path + ".");
  }
  if (errno != ECONNREFUSED) return system_error("The socket " + path + " cannot be tried");
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return system_error("The old socket " + path + " cannot be removed");
  }
  return {};
}

}  // namespace

ListenSocket::ListenSocket(UniqueFd fd, std::string path, dev_t device, ino_t inode)
    : fd_(std::move(fd)), path_(std::move(path)), device_(device), inode_(inode) {}

ListenSocket::ListenSocket(ListenSocket&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::exchange(other.path_, {})),
      device_(other.device_),
      inode_(other.inode_) {}

ListenSocket::~ListenSocket() {
  remove_name();
}

Result<ListenSocket> ListenSocket::open(const std::string& path) {
  if (path.size() >= kPathLimit) {
    return fail(Reason::kInvalidArgument, "The socket's path has " + std::to_string(path.size()) +
                                              " bytes, but a Unix socket's may have at most " +
                                              std::to_string(kPathLimit - 1) + ": " + path);
  }
  const auto directory = private_directory(directory_of(path));
  if (!directory) return fail(directory.error());
  if (auto cleared = clear_name(path); !cleared) return fail(cleared.error());

  auto fd = new_socket();
  if (!fd) return system_error("socket");
  const auto address = address_of(path);
  if (::bind(fd.get(), generic(address), sizeof address) != 0) {
    return system_error("The socket " + path + " cannot be made");
  }
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return system_error("lstat " + path);
  ListenSocket socket(std::move(fd), path, status.st_dev, status.st_ino);
  if (::listen(socket.fd(), kBacklog) != 0) return system_error("listen on " + path);
  return socket;
}

UniqueFd ListenSocket::accept() const {
  UniqueFd connection(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!connection) return connection;
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool known = ::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  if (!known || (peer.uid != ::geteuid() && peer.uid != 0)) connection.reset();
  return connection;
}

void ListenSocket::remove_name() {
  if (path_.empty()) return;
  struct stat status {};
  if (::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_) {
    ::unlink(path_.c_str());
  }
  path_.clear();
}

}  // namespace berth::worker
