#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace berth::process {

// A socket that accepts connections, as the kernel tells of it.
struct ListeningSocket {
  std::uint64_t inode = 0;
  uid_t user = 0;
  bool user_known = false;
};

// Those that accept connections to 127.0.0.1 at one port.
struct ListeningSockets {
  std::vector<ListeningSocket> loopback;    // bound to 127.0.0.1
  std::vector<ListeningSocket> everywhere;  // bound to all addresses
};

// Asks the kernel for its listening sockets alone (sock_diag, about 0.1 ms), and where that is not
// to be had reads all of its sockets (/proc/net/tcp, some milliseconds). Any thread.
ListeningSockets listening_at_port(std::uint16_t port);
// The same by /proc alone.
ListeningSockets listening_at_port_by_proc(std::uint16_t port);

// Those at the path of a Unix socket. Any thread.
std::vector<ListeningSocket> listening_at_path(const std::string& path);

}  // namespace berth::process
