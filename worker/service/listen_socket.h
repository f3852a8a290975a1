#pragma once

#include <sys/types.h>

#include <string>

#include "common/fd.h"
#include "common/result.h"

namespace berth::worker {

// A listening Unix socket in a private directory. Owns the socket and its name in the file system;
// the name goes when this is destroyed or remove_name() is called. Main thread.
class ListenSocket {
 public:
  static constexpr std::size_t kPathLimit = 108;  // of the kernel, with the final NUL

  // The directory is made if its parent exists; it must belong to this user and be closed to all
  // others. A socket that nobody listens on is replaced.
  // Errors: kInvalidArgument (path too long); kConflict (somebody listens there); kPermissionDenied
  // (directory not private); kNoRoom (with the step
  // and errno: a shortage, or a disk that stumbled; it may pass); kInternal with the step and
  // errno.
  static Result<ListenSocket> open(const std::string& path);

  ListenSocket(ListenSocket&& other) noexcept;
  ListenSocket& operator=(ListenSocket&&) = delete;
  ListenSocket(const ListenSocket&) = delete;
  ListenSocket& operator=(const ListenSocket&) = delete;
  ~ListenSocket();

  [[nodiscard]] int fd() const { return fd_.get(); }
  // A connection of a process of this user or root, non-blocking; invalid where there is none.
  [[nodiscard]] UniqueFd accept() const;
  // Removes the name, unless another socket has it by now.
  void remove_name();

 private:
  ListenSocket(UniqueFd fd, std::string path, dev_t device, ino_t inode);

  UniqueFd fd_;
  std::string path_;  // empty: the name is not ours any more
  dev_t device_;
  ino_t inode_;
};

}  // namespace berth::worker
