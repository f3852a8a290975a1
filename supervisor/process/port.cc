#include "supervisor/process/port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "common/errno_text.h"
#include "common/text.h"
#include "supervisor/process/launch_error.h"
#include "supervisor/process/listening_sockets.h"
#include "supervisor/process/proc.h"

namespace berth::process {
namespace {

constexpr std::uint32_t kFirstPort = 10'000;  // below are the well-known services
constexpr std::uint32_t kEndPort = 65'536;

// --- Choosing.

struct Range {
  std::uint32_t first = 32'768;  // the kernel's own default
  std::uint32_t last = 60'999;
};

Range connection_range() {
  Range range;
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  Range read;
  if (file >> read.first >> read.last && read.first <= read.last) range = read;
  return range;
}

// Ports that an operator keeps for something, as "8080,9000-9010".
std::vector<Range> kept_ports() {
  std::vector<Range> kept;
  std::ifstream file("/proc/sys/net/ipv4/ip_local_reserved_ports");
  std::string part;
  while (std::getline(file, part, ',')) {
    std::istringstream text(part);
    Range range;
    if (!(text >> range.first)) continue;
    range.last = range.first;
    char dash = 0;
    if (text >> dash && dash == '-') text >> range.last;
    kept.push_back(range);
  }
  return kept;
}

std::vector<std::uint16_t> ports_to_try() {
  const Range connections = connection_range();
  const std::vector<Range> kept = kept_ports();
  std::vector<std::uint16_t> ports;
  for (std::uint32_t port = kFirstPort; port < kEndPort; ++port) {
    if (port >= connections.first && port <= connections.last) continue;
    const bool taken = std::any_of(kept.begin(), kept.end(), [port](const Range& range) {
      return port >= range.first && port <= range.last;
    });
    if (!taken) ports.push_back(static_cast<std::uint16_t>(port));
  }
  return ports;
}

std::uint32_t random_number() {
  std::uint32_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) {
    number = static_cast<std::uint32_t>(::getpid());  // cannot happen; only spreads the tries
  }
  return number;
}

// `port` 0: any. Nothing where it is not free.
std::optional<ReservedPort> bind_port(std::uint16_t port) {
  ReservedPort reserved;
  reserved.socket.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!reserved.socket) return std::nullopt;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  // The sockets API takes every family's address by this type. Without SO_REUSEADDR: a port in
  // whatever state is none for a program that does not set it either.
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(reserved.socket.get(), generic, sizeof address) != 0) return std::nullopt;
  socklen_t size = sizeof address;
  if (::getsockname(reserved.socket.get(), generic, &size) != 0) return std::nullopt;
  reserved.port = ntohs(address.sin_port);
  return reserved;
}

// --- Looking who listens.

using Inode = std::uint64_t;

// Whether the process has one of the sockets open.
bool holds(pid_t pid, Inode inode) {
  const std::string wanted = "socket:[" + std::to_string(inode) + "]";
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  for (const int fd : numbered_entries(folder)) {
    std::array<char, 64> target{};
    const ssize_t size =
        ::readlink((folder + "/" + std::to_string(fd)).c_str(), target.data(), target.size());
    if (size > 0 && std::string_view(target.data(), static_cast<std::size_t>(size)) == wanted) {
      return true;
    }
  }
  return false;
}

std::vector<pid_t> tree_of(pid_t root) {
  if (root <= 0) return {};  // none of whom we know; the kernel's own process is everybody's root
  constexpr std::size_t kMost = 4096;
  std::vector<pid_t> tree = {root};
  for (std::size_t i = 0; i < tree.size() && tree.size() < kMost; ++i) {
    for (const pid_t child : children_of(tree[i])) tree.push_back(child);
  }
  return tree;
}

std::string describe_holder(const ListeningSocket& socket) {
  for (const pid_t pid : numbered_entries("/proc")) {
    if (!holds(pid, socket.inode)) continue;
    std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
    std::string name;
    std::getline(file, name);
    constexpr std::size_t kLongestName = 32;
    return "pid " + std::to_string(pid) + " (" + printable_line(name, kLongestName) + ")";
  }
  // Whose files another user may not see.
  if (socket.user_known) return "a process of user " + std::to_string(socket.user);
  return "another process";
}

Listener judge(const std::vector<ListeningSocket>& sockets, pid_t root) {
  Listener listener;
  if (sockets.empty()) return listener;
  const std::vector<pid_t> tree = tree_of(root);
  listener.who = Answerer::kChild;
  for (const ListeningSocket& socket : sockets) {
    const bool ours =
        std::any_of(tree.begin(), tree.end(), [&](pid_t pid) { return holds(pid, socket.inode); });
    if (ours) continue;
    listener.who = Answerer::kOther;
    listener.other = describe_holder(socket);
    break;
  }
  return listener;
}

}  // namespace

class PortClaim {
 public:
  PortClaim(std::shared_ptr<PortBook::Claimed> claimed, std::uint16_t port)
      : claimed_(std::move(claimed)), port_(port) {}
  PortClaim(const PortClaim&) = delete;
  PortClaim& operator=(const PortClaim&) = delete;
  ~PortClaim() {
    const std::lock_guard lock(claimed_->mutex);
    claimed_->ports.erase(port_);
  }

  // Nothing where it is claimed already.
  static std::shared_ptr<const PortClaim> make(const std::shared_ptr<PortBook::Claimed>& claimed,
                                               std::uint16_t port) {
    {
      const std::lock_guard lock(claimed->mutex);
      if (!claimed->ports.insert(port).second) return nullptr;
    }
    return std::make_shared<const PortClaim>(claimed, port);
  }

 private:
  const std::shared_ptr<PortBook::Claimed> claimed_;
  const std::uint16_t port_;
};

std::size_t PortBook::claimed() const {
  const std::lock_guard lock(claimed_->mutex);
  return claimed_->ports.size();
}

Result<ReservedPort> PortBook::reserve() {
  const std::vector<std::uint16_t> ports = ports_to_try();
  constexpr int kTries = 64;
  int problem = 0;
  for (int i = 0; i < 2 * kTries; ++i) {
    const bool any = i >= kTries || ports.empty();
    auto reserved = bind_port(any ? std::uint16_t{0} : ports[random_number() % ports.size()]);
    if (!reserved) {
      problem = errno;
      if (any) break;
      continue;
    }
    reserved->claim = PortClaim::make(claimed_, reserved->port);
    if (reserved->claim) return *std::move(reserved);
  }
  // Ports, descriptors or memory: whatever it is, others have it now, and give it back.
  return fail(shortage_error("No port of 127.0.0.1 is free for the program" +
                             (problem != 0 ? ": " + errno_text(problem) : std::string()) + "."));
}

Listener listener_on_port(std::uint16_t port, pid_t root) {
  const ListeningSockets sockets = listening_at_port(port);
  // The kernel takes the closest address first.
  Listener listener = judge(sockets.loopback.empty() ? sockets.everywhere : sockets.loopback, root);
  listener.everywhere = !sockets.everywhere.empty() && listener.who == Answerer::kChild &&
                        judge(sockets.everywhere, root).who == Answerer::kChild;
  return listener;
}

Listener listener_on_socket(const std::string& path, pid_t root) {
  return judge(listening_at_path(path), root);
}

}  // namespace berth::process
