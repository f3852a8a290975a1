#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "supervisor/core/memory/saturating.h"

namespace berth::core {

// Which row of the table of domains (M1): an index that holds as long as that table does. Nothing
// that outlives the process is named by it: that takes Domain::id.
using DomainIndex = std::uint8_t;
inline constexpr DomainIndex kHostDomain = 0;
// The host and 15 devices. A machine with more is served with its first ones, and says so.
inline constexpr std::size_t kMaxDomains = 16;

// Bytes in each domain. A value; sums stay at the greatest number instead of wrapping, since a
// charge that a hostile file claims must never look small.
class DomainBytes {
 public:
  constexpr DomainBytes() = default;
  static constexpr DomainBytes in(DomainIndex domain, std::uint64_t bytes) {
    DomainBytes only;
    only[domain] = bytes;
    return only;
  }

  constexpr std::uint64_t& operator[](DomainIndex domain) { return bytes_[domain]; }
  constexpr std::uint64_t operator[](DomainIndex domain) const { return bytes_[domain]; }

  constexpr DomainBytes& operator+=(const DomainBytes& other) {
    for (std::size_t i = 0; i < kMaxDomains; ++i) {
      bytes_[i] = saturating_add(bytes_[i], other.bytes_[i]);
    }
    return *this;
  }
  // Never below 0.
  constexpr DomainBytes& operator-=(const DomainBytes& other) {
    for (std::size_t i = 0; i < kMaxDomains; ++i) bytes_[i] -= std::min(bytes_[i], other.bytes_[i]);
    return *this;
  }
  friend constexpr DomainBytes operator+(DomainBytes a, const DomainBytes& b) { return a += b; }
  friend constexpr DomainBytes operator-(DomainBytes a, const DomainBytes& b) { return a -= b; }

  // Nowhere more than in `room`.
  [[nodiscard]] constexpr bool fits(const DomainBytes& room) const {
    for (std::size_t i = 0; i < kMaxDomains; ++i) {
      if (bytes_[i] > room.bytes_[i]) return false;
    }
    return true;
  }
  [[nodiscard]] constexpr bool empty() const { return *this == DomainBytes(); }
  constexpr bool operator==(const DomainBytes&) const = default;

 private:
  std::array<std::uint64_t, kMaxDomains> bytes_{};
};

// Over all domains; at most the greatest number.
constexpr std::uint64_t sum_of(const DomainBytes& bytes) {
  std::uint64_t sum = 0;
  for (DomainIndex i = 0; i < kMaxDomains; ++i) sum = saturating_add(sum, bytes[i]);
  return sum;
}

// Only in the domains of which `used` takes something: nothing is missing or left elsewhere.
constexpr DomainBytes only_where(DomainBytes bytes, const DomainBytes& used) {
  for (DomainIndex i = 0; i < kMaxDomains; ++i) {
    if (used[i] == 0) bytes[i] = 0;
  }
  return bytes;
}

// The domain with the most; the first of them, and the host where there is nothing anywhere.
constexpr DomainIndex largest_of(const DomainBytes& bytes) {
  DomainIndex at = kHostDomain;
  for (DomainIndex i = 0; i < kMaxDomains; ++i) {
    if (bytes[i] > bytes[at]) at = i;
  }
  return at;
}

// A pool of memory with one budget (M1), as it is at one moment. Bytes.
struct Domain {
  // "host"; a device's PCI address matched to its UUID, else backend:name. Stable over restarts.
  std::string id;
  // As libllama names it ("CUDA0"), for its launch and its reports; the host has none.
  std::string device;
  std::uint64_t total = 0;
  std::uint64_t budget = 0;   // total - headroom, or from the configuration
  std::uint64_t foreign = 0;  // what processes that are not ours use of it (M3)
  // Absent at the moment, as a device that the driver has lost: nothing new is placed there.
  bool lost = false;

  // min(budget, total - foreign - 5 % of the total) (M3).
  [[nodiscard]] constexpr std::uint64_t limit() const {
    const std::uint64_t kept = saturating_add(foreign, total / 20);
    return lost ? 0 : std::min(budget, total > kept ? total - kept : 0);
  }
  bool operator==(const Domain&) const = default;
};

// The host first. At most kMaxDomains.
using Domains = std::vector<Domain>;

}  // namespace berth::core
