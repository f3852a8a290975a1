#include "supervisor/process/listening_sockets.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "common/fd.h"

namespace berth::process {
namespace {

// --- By /proc.

std::string hex_word(std::uint32_t word) {
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08X", word);
  return text.data();
}

// As the kernel writes addresses: each 32-bit word in the machine's order.
struct Addresses {
  std::string loopback4 = hex_word(htonl(INADDR_LOOPBACK));
  std::string any4 = hex_word(0);
  std::string loopback6 = hex_word(0) + hex_word(0) + hex_word(htonl(0xFFFF)) + loopback4;
  std::string any6 = hex_word(0) + hex_word(0) + hex_word(0) + hex_word(0);
};

// Of /proc/net/tcp or tcp6.
void read_listeners(const char* path, std::uint16_t port, ListeningSockets& sockets) {
  const Addresses addresses;
  std::array<char, 5> wanted{};
  std::snprintf(wanted.data(), wanted.size(), "%04X", static_cast<unsigned int>(port));
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);  // the heading
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string slot;
    std::string local;
    std::string remote;
    std::string state;
    std::string skipped;
    ListeningSocket found;
    fields >> slot >> local >> remote >> state;
    if (state != "0A") continue;  // TCP_LISTEN
    const std::size_t colon = local.find(':');
    if (colon == std::string::npos || local.compare(colon + 1, std::string::npos, wanted.data())) {
      continue;
    }
    fields >> skipped >> skipped >> skipped >> found.user >> skipped >> found.inode;
    if (!fields) continue;
    found.user_known = true;
    const std::string address = local.substr(0, colon);
    if (address == addresses.loopback4 || address == addresses.loopback6) {
      sockets.loopback.push_back(found);
    } else if (address == addresses.any4 || address == addresses.any6) {
      sockets.everywhere.push_back(found);
    }
  }
}

// --- By sock_diag(7).

struct Question {
  nlmsghdr header;
  inet_diag_req_v2 request;
};

bool ask(int socket, std::uint8_t family, std::uint16_t port) {
  Question question{};
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  question.request.sdiag_family = family;
  question.request.sdiag_protocol = IPPROTO_TCP;
  question.request.idiag_states = 1U << static_cast<unsigned int>(TCP_LISTEN);
  question.request.id.idiag_sport = htons(port);
  return ::send(socket, &question, sizeof question, 0) == sizeof question;
}

void add(const inet_diag_msg& told, std::uint16_t port, ListeningSockets& sockets) {
  if (told.idiag_state != TCP_LISTEN || told.id.idiag_sport != htons(port)) return;
  const ListeningSocket found{told.idiag_inode, told.idiag_uid, true};
  const auto& address = told.id.idiag_src;  // in network order
  const std::uint32_t loopback = htonl(INADDR_LOOPBACK);
  const bool four = told.idiag_family == AF_INET;
  const bool mapped = address[0] == 0 && address[1] == 0 && address[2] == htonl(0xFFFF);
  const bool any6 = address[0] == 0 && address[1] == 0 && address[2] == 0 && address[3] == 0;
  if (four ? address[0] == loopback : mapped && address[3] == loopback) {
    sockets.loopback.push_back(found);
  } else if (four ? address[0] == 0 : any6) {
    sockets.everywhere.push_back(found);
  }
}

// False: the kernel does not tell.
bool read_answer(int socket, std::uint16_t port, ListeningSockets& sockets) {
  constexpr std::size_t kMessages = 32UL << 10U;  // what the kernel sends at once
  alignas(nlmsghdr) std::array<char, kMessages> messages{};
  while (true) {
    const ssize_t got = ::recv(socket, messages.data(), messages.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    std::size_t at = 0;
    const auto size = static_cast<std::size_t>(got);
    while (at + sizeof(nlmsghdr) <= size) {
      nlmsghdr header{};
      std::memcpy(&header, messages.data() + at, sizeof header);
      if (header.nlmsg_len < sizeof header || at + header.nlmsg_len > size) return false;
      // The table changed while it was read: something may be missing.
      if ((header.nlmsg_flags & NLM_F_DUMP_INTR) != 0) return false;
      if (header.nlmsg_type == NLMSG_DONE) return true;
      if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return false;
      inet_diag_msg told{};
      if (header.nlmsg_len < NLMSG_HDRLEN + sizeof told) return false;
      std::memcpy(&told, messages.data() + at + NLMSG_HDRLEN, sizeof told);
      add(told, port, sockets);
      at += NLMSG_ALIGN(header.nlmsg_len);
    }
  }
}

std::optional<ListeningSockets> listening_by_diag(std::uint16_t port) {
  const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!socket) return std::nullopt;
  const timeval longest{1, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
  ListeningSockets sockets;
  for (const std::uint8_t family : {std::uint8_t{AF_INET}, std::uint8_t{AF_INET6}}) {
    if (!ask(socket.get(), family, port)) return std::nullopt;
    if (!read_answer(socket.get(), port, sockets)) return std::nullopt;
  }
  return sockets;
}

}  // namespace

ListeningSockets listening_at_port(std::uint16_t port) {
  if (std::optional<ListeningSockets> told = listening_by_diag(port)) return *std::move(told);
  return listening_at_port_by_proc(port);
}

ListeningSockets listening_at_port_by_proc(std::uint16_t port) {
  ListeningSockets sockets;
  read_listeners("/proc/net/tcp", port, sockets);
  read_listeners("/proc/net/tcp6", port, sockets);
  return sockets;
}

std::vector<ListeningSocket> listening_at_path(const std::string& path) {
  std::vector<ListeningSocket> sockets;
  std::ifstream file("/proc/net/unix");
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string skipped;
    std::string flags;
    ListeningSocket found;
    fields >> skipped >> skipped >> skipped >> flags >> skipped >> skipped >> found.inode;
    std::string bound;
    std::getline(fields >> std::ws, bound);
    constexpr std::string_view kAccepting = "00010000";  // __SO_ACCEPTCON
    if (flags == kAccepting && bound == path) sockets.push_back(found);
  }
  return sockets;
}

}  // namespace berth::process
