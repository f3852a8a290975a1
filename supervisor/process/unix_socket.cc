#include "supervisor/process/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "common/errno_text.h"
#include "common/fd.h"
#include "supervisor/process/directories.h"

namespace berth::process {
namespace {

static_assert(kLongestSocketPath + 1 == sizeof(sockaddr_un::sun_path));

tl::unexpected<Error> in_use(const std::string& path, int connected) {
  ucred peer{};
  socklen_t size = sizeof peer;
  std::string who = "another process";
  if (connected >= 0 && ::getsockopt(connected, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
      peer.pid > 0) {
    who = "pid " + std::to_string(peer.pid);
  }
  return fail(Reason::kConflict,
              "The socket " + path + " is in use by " + who + ". Stop it, or choose another path.");
}

}  // namespace

Status prepare_socket_path(const std::string& path) {
  if (path.size() > kLongestSocketPath) {
    return fail(Reason::kInvalidArgument,
                "The socket path " + path + " is " + std::to_string(path.size()) +
                    " bytes long; the kernel takes at most " + std::to_string(kLongestSocketPath) +
                    ". Choose a shorter directory.");
  }
  const std::size_t slash = path.rfind('/');
  if (path.empty() || slash == std::string::npos || slash + 1 == path.size()) {
    return fail(Reason::kInvalidArgument,
                "The socket path \"" + path + "\" is not an absolute path of a file.");
  }
  if (slash > 0) {
    constexpr mode_t kMode = S_IRWXU | S_IRGRP | S_IXGRP;
    if (auto made = ensure_directory(path.substr(0, slash), kMode); !made) return made;
  }

  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return {};
    return fail(Reason::kInvalidArgument,
                "The socket path " + path + " cannot be used: " + errno_text(errno) + ".");
  }
  if (!S_ISSOCK(info.st_mode)) {
    return fail(Reason::kInvalidArgument, path +
                                              " exists and is not a socket; it is left as it is. "
                                              "Remove it, or choose another path.");
  }

  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe) return fail(Reason::kInternal, "socket: " + errno_text(errno));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(&address.sun_path[0], path.c_str(), path.size());
  // The sockets API takes every family's address by this type.
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(probe.get(), generic, sizeof address) == 0) return in_use(path, probe.get());
  switch (errno) {
    case ECONNREFUSED:
      break;
    case EAGAIN:      // its backlog is full
    case EPROTOTYPE:  // a socket of another type
      return in_use(path, -1);
    default:
      return fail(Reason::kInvalidArgument,
                  "The socket " + path + " cannot be probed: " + errno_text(errno) + ".");
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return fail(
        Reason::kInvalidArgument,
        "The socket " + path + " is left over and cannot be removed: " + errno_text(errno) + ".");
  }
  return {};
}

}  // namespace berth::process
