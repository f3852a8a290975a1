#include "supervisor/gateway/grpc/given_connections.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace berth::gateway {
namespace {

// 0: there is no such descriptor. Its number may be closed and taken by another thread meanwhile,
// which is what is asked; not by fstat(), of which ThreadSanitizer would take that for a mistake.
std::uint64_t inode_of(int fd) {
  struct statx info {};
  return ::statx(fd, "", AT_EMPTY_PATH, STATX_INO, &info) == 0 ? info.stx_ino : 0;
}

}  // namespace

bool GivenConnections::add(int fd, std::string owner, bool trusted) {
  if (!fits(owner, trusted)) {
    std::erase_if(given_, [](const Given& one) { return inode_of(one.fd) != one.inode; });
    if (!fits(owner, trusted)) return false;
  }
  // Without it nothing would tell when the connection is gone.
  const std::uint64_t inode = inode_of(fd);
  if (inode == 0) return false;
  given_.push_back({fd, inode, std::move(owner), trusted});
  return true;
}

bool GivenConnections::fits(const std::string& owner, bool trusted) const {
  if (given_.size() >= bounds_.most) return false;
  if (trusted) return true;
  std::unordered_map<std::string_view, std::size_t> counts;
  std::size_t untrusted = 0;
  for (const Given& one : given_) {
    if (one.trusted) continue;
    ++untrusted;
    ++counts[one.owner];
  }
  const std::size_t same = counts[owner];
  if (untrusted >= bounds_.most_untrusted || same >= bounds_.most_of_owner) return false;
  if (same < bounds_.own) return true;
  std::size_t beyond = 0;
  for (const auto& [who, count] : counts) beyond += count - std::min(count, bounds_.own);
  return beyond < bounds_.most_untrusted - bounds_.own * bounds_.owners;
}

}  // namespace berth::gateway
