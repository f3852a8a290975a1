#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/result.h"

namespace berth::core {

struct GenerateRequest;
struct EmbedRequest;
struct TokenizeRequest;
struct DetokenizeRequest;

// About how many bytes a request keeps in memory until it is sent to its worker.
std::uint64_t bytes_of(const GenerateRequest& request);
std::uint64_t bytes_of(const EmbedRequest& request);
std::uint64_t bytes_of(const TokenizeRequest& request);
std::uint64_t bytes_of(const DetokenizeRequest& request);

// What one request has of the bytes below; gives them back when it goes. Core strand; may outlive
// them.
class HeldBytes {
 public:
  HeldBytes() = default;
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;
  HeldBytes(HeldBytes&& other) noexcept = default;
  HeldBytes& operator=(HeldBytes&& other) noexcept = default;
  ~HeldBytes() = default;

 private:
  friend class WaitingBytes;

  explicit HeldBytes(std::shared_ptr<void> token) : token_(std::move(token)) {}

  std::shared_ptr<void> token_;
};

// The bytes of all large requests that wait for their workers, of which one tenant gets half. Small
// ones are not counted: there are few enough of them (WaitingTotal). Core strand only.
class WaitingBytes {
 public:
  static constexpr std::uint64_t kLeast = 512U << 20;
  // Most bytes of a small request.
  static constexpr std::uint64_t kSmall = 64U << 10;

  explicit WaitingBytes(std::uint64_t most = kLeast) : held_(std::make_shared<Held>()) {
    held_->most = most;
  }

  // Counts from the next request on.
  void set_most(std::uint64_t most) { held_->most = most; }

  // Errors: kQueueFull.
  Result<HeldBytes> take(const std::string& tenant, std::uint64_t bytes);

 private:
  struct Held {
    std::uint64_t most = 0;
    std::uint64_t all = 0;
    std::map<std::string, std::uint64_t> by_tenant;  // none that holds nothing
  };

  std::shared_ptr<Held> held_;
};

}  // namespace berth::core
