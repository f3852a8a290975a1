#pragma once

#include <cstdint>
#include <optional>

namespace berth::worker {

// A character of UTF-8 of which the first bytes are known: tokens may end within one. A value.
class PartialCharacter {
 public:
  // What one more byte makes of it.
  enum class Step : std::uint8_t { kWhole, kPart, kBroken };

  // After kWhole, code_point() is the character, and the next byte begins another one. After
  // kBroken it is used no more.
  Step add(std::uint8_t byte);
  [[nodiscard]] std::uint32_t code_point() const { return value_; }

  // Whether bytes are missing; then it can become a code point from lowest() to highest().
  [[nodiscard]] bool is_open() const { return missing_ > 0; }
  [[nodiscard]] std::uint32_t lowest() const;
  [[nodiscard]] std::uint32_t highest() const;

 private:
  bool begin(std::uint8_t lead);

  std::uint32_t value_ = 0;
  std::uint8_t missing_ = 0;  // bytes
  std::uint8_t low_ = 0x80;   // bounds of the next byte
  std::uint8_t high_ = 0xBF;
};

}  // namespace berth::worker
