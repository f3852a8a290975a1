#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "common/clock.h"

namespace berth {

// Time-ordered 128 bit identifier, UUID version 7 (RFC 9562, section 5.7): 48 bits of Unix
// milliseconds, then random bits.
class Uuid {
 public:
  Uuid() = default;  // nil

  // `random` is 74 bits' worth of randomness in two words; the clock and the source of randomness
  // are the caller's, so that a simulation's ids repeat.
  static Uuid make(WallTime time, std::uint64_t random_high, std::uint64_t random_low);
  // Parses the 36 character form; nil where it is not one.
  static Uuid parse(std::string_view text);

  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] bool is_nil() const { return bytes_ == std::array<std::uint8_t, 16>{}; }
  auto operator<=>(const Uuid&) const = default;  // NOLINT(modernize-use-nullptr)

 private:
  std::array<std::uint8_t, 16> bytes_{};
};

// Where ids come from. Thread-safe. The real one draws from getrandom(2).
class IdSource {
 public:
  IdSource() = default;
  IdSource(const IdSource&) = delete;
  IdSource& operator=(const IdSource&) = delete;
  virtual ~IdSource() = default;
  virtual Uuid next() = 0;
};

// Ids that grow strictly within the process, also within one millisecond.
class SystemIdSource : public IdSource {
 public:
  Uuid next() override;

 private:
  std::mutex mutex_;
  WallTime last_time_{};       // of the newest id; may run ahead of the clock
  std::uint32_t counter_ = 0;  // 12 bits
};

}  // namespace berth
