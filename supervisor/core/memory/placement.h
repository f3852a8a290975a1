#pragma once

#include <cstdint>
#include <vector>

#include "supervisor/core/memory/domain.h"

namespace berth::core {

// Where the layers of a model are: of all, the output included, the last ones are on devices, in
// this order; what is left is in the host. That is how libllama splits (src/llama-model.cpp).
struct Placement {
  struct Share {
    DomainIndex device = 0;
    std::uint32_t layers = 0;

    bool operator==(const Share&) const = default;
  };
  std::vector<Share> shares{};  // empty: all in the host

  bool operator==(const Placement&) const = default;
};

// One way to place a model, with its charge. Bytes.
struct PlacementOption {
  Placement placement{};
  DomainBytes bytes{};

  // More than one device.
  [[nodiscard]] bool split() const { return placement.shares.size() > 1; }
  bool operator==(const PlacementOption&) const = default;
};

}  // namespace berth::core
