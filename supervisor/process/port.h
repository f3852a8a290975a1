#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "common/fd.h"
#include "common/result.h"

namespace berth::process {

// Where a command worker listens (L27): a port that is chosen so that nobody else gets it, and the
// proof that it is this child which answers there. /proc says who holds a socket; whoever connects
// without looking may talk to a stranger.

// A port that no other program of ours is given. Lives until the last of those who share it lets it
// go; it may outlive the book. Any thread.
class PortClaim;

// A port of 127.0.0.1 that is free, and the bound socket that keeps it so. Close the socket just
// before the program is executed. Then the port is free again until the program has bound it, which
// may take it minutes: keep the claim until its load is over.
struct ReservedPort {
  std::uint16_t port = 0;
  UniqueFd socket;
  std::shared_ptr<const PortClaim> claim;
};

// Chooses ports, and knows those that are claimed; there is one in a program. Any thread.
class PortBook {
 public:
  // Takes a random port outside of the range from which the kernel gives ports to connections
  // (net.ipv4.ip_local_port_range), so that none of them takes it between the closing of the socket
  // and the program's own bind; a port of that range only where no other is free. Never one that is
  // claimed. Errors: kLoadFailed of class `resource` where not a single port is free.
  Result<ReservedPort> reserve();
  // How many ports are claimed.
  [[nodiscard]] std::size_t claimed() const;

 private:
  friend class PortClaim;
  struct Claimed {
    std::mutex mutex;
    std::set<std::uint16_t> ports;
  };
  const std::shared_ptr<Claimed> claimed_ = std::make_shared<Claimed>();
};

enum class Answerer : std::uint8_t {
  kNobody,  // nobody listens there
  kChild,   // a process of the child's tree
  kOther,   // somebody else, alone or beside the child
};

struct Listener {
  Answerer who = Answerer::kNobody;
  std::string other;        // of kOther: "pid 12 (nginx)", "a process of user 33"
  bool everywhere = false;  // listens on all addresses of the machine, not on loopback alone
};

// Who accepts connections to 127.0.0.1:`port`: every socket that the kernel might choose must
// belong to `root` (0: nobody) or one of its descendants. Any thread; about 0.1 ms, or some
// milliseconds where the kernel has no sock_diag(7).
Listener listener_on_port(std::uint16_t port, pid_t root);

// The same for a Unix socket.
Listener listener_on_socket(const std::string& path, pid_t root);

}  // namespace berth::process
