#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace berth::gateway {

// How many connections there may be at once.
struct ConnectionBounds {
  std::size_t most = 0;            // of all
  std::size_t most_untrusted = 0;  // of those who are not trusted, together
  std::size_t most_of_owner = 0;   // of one owner of these
  // So many of each of them are not counted for what the others hold beyond theirs, and room for
  // so many owners is kept for them.
  std::size_t own = 0;
  std::size_t owners = 0;
};

// Connections that were given away, counted by owner. Whoever has one closes it, after which its
// descriptor is another file's, or nobody's. One thread.
class GivenConnections {
 public:
  explicit GivenConnections(const ConnectionBounds& bounds) : bounds_(bounds) {}

  // Counts the connection where there is room for it, and the kernel tells it apart; else it has to
  // be closed.
  bool add(int fd, std::string owner, bool trusted);

 private:
  struct Given {
    int fd = -1;
    std::uint64_t inode = 0;
    std::string owner;
    bool trusted = false;
  };

  [[nodiscard]] bool fits(const std::string& owner, bool trusted) const;

  const ConnectionBounds bounds_;
  std::vector<Given> given_;
};

}  // namespace berth::gateway
