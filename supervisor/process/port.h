#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "common/fd.h"
#include "common/result.h"

namespace berth::process {

// Where a command worker listens (L27): a port that is chosen so that nobody else gets it, and the
// proof that it is this child which answers there. /proc says who holds a socket; whoever connects
// without looking may talk to a stranger.

// A port of 127.0.0.1 that is free, and the bound socket that keeps it so. Close the socket just
// before the program is executed.
struct ReservedPort {
  std::uint16_t port = 0;
  UniqueFd socket;
};

// Takes a random port outside of the range from which the kernel gives ports to connections
// (net.ipv4.ip_local_port_range), so that none of them takes it between the closing of the socket
// and the program's own bind; a port of that range only where no other is free.
// Errors: kLoadFailed where not a single port is free.
Result<ReservedPort> reserve_port();

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
// belong to `root` or one of its descendants. Any thread; reads memory-backed files, about a
// millisecond.
Listener listener_on_port(std::uint16_t port, pid_t root);

// The same for a Unix socket.
Listener listener_on_socket(const std::string& path, pid_t root);

}  // namespace berth::process
