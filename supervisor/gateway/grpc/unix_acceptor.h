#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "common/result.h"

namespace berth::gateway {

// Who is at the other end of a connection by a Unix socket, as the kernel knows it from the moment
// of its connect().
struct SocketPeer {
  uid_t uid = 0;
  std::vector<gid_t> groups;  // all of them, also the primary one
};
// Errors: kInternal.
Result<SocketPeer> peer_of(int connection);

// Takes connections from Unix sockets, on a thread of its own. Destroying it ends that, and removes
// the sockets. `on_connection` is called on that thread, one call at a time.
class UnixAcceptor {
 public:
  using OnConnection = std::function<void(UniqueFd connection, const SocketPeer& peer)>;
  struct Options {
    std::vector<std::string> paths;  // made ready by process::prepare_socket_path()
    mode_t mode = 0600;              // who may connect
    OnConnection on_connection;
    // Whose connections the others' never keep out. On its thread. Absent: nobody's.
    std::function<bool(const SocketPeer& peer)> trusted{};
    // Connections at once, beyond which a new one is closed: of all, of those who are not trusted
    // together, and of one user of these.
    std::size_t most = 576;
    std::size_t most_untrusted = 512;
    std::size_t most_of_user = 256;
  };

  // Listens. Nobody but berth's own user can connect before the mode is set. Errors:
  // kInvalidArgument, kInternal with the socket.
  static Result<std::unique_ptr<UnixAcceptor>> listen(Options options);

  UnixAcceptor(const UnixAcceptor&) = delete;
  UnixAcceptor& operator=(const UnixAcceptor&) = delete;
  ~UnixAcceptor();

 private:
  explicit UnixAcceptor(Options options) : options_(std::move(options)) {}

  Status open();
  void run();
  void accept_from(int listener);
  // Whether there is room for one more of that user.
  bool has_room(uid_t uid, bool trusted);

  // One that was given away. Whoever has it closes it, after which its descriptor is another
  // file's, or nobody's.
  struct Given {
    int fd = -1;
    ino_t inode = 0;
    uid_t uid = 0;
    bool trusted = false;
  };

  const Options options_;
  std::vector<UniqueFd> listeners_;
  UniqueFd stop_;             // an eventfd
  std::vector<Given> given_;  // its thread's
  std::thread thread_;
};

}  // namespace berth::gateway
