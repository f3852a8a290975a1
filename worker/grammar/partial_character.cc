#include "worker/grammar/partial_character.h"

namespace berth::worker {
namespace {

constexpr std::uint8_t kTailLow = 0x80;
constexpr std::uint8_t kTailHigh = 0xBF;
constexpr std::uint32_t kTailBits = 0x3F;

}  // namespace

PartialCharacter::Step PartialCharacter::add(std::uint8_t byte) {
  if (missing_ == 0) {
    if (!begin(byte)) return Step::kBroken;
  } else {
    if (byte < low_ || byte > high_) return Step::kBroken;
    value_ = (value_ << 6U) | (byte & kTailBits);
    low_ = kTailLow;
    high_ = kTailHigh;
    --missing_;
  }
  return missing_ == 0 ? Step::kWhole : Step::kPart;
}

// Unicode 15, table 3-7: what a second byte may be depends on the first.
bool PartialCharacter::begin(std::uint8_t lead) {
  low_ = kTailLow;
  high_ = kTailHigh;
  if (lead < 0x80) {
    value_ = lead;
  } else if (lead >= 0xC2 && lead <= 0xDF) {
    missing_ = 1;
    value_ = lead & 0x1FU;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    missing_ = 2;
    value_ = lead & 0x0FU;
    if (lead == 0xE0) low_ = 0xA0;
    if (lead == 0xED) high_ = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    missing_ = 3;
    value_ = lead & 0x07U;
    if (lead == 0xF0) low_ = 0x90;
    if (lead == 0xF4) high_ = 0x8F;
  } else {
    return false;
  }
  return true;
}

std::uint32_t PartialCharacter::lowest() const {
  return ((value_ << 6U) | (low_ & kTailBits)) << (6U * (missing_ - 1U));
}

std::uint32_t PartialCharacter::highest() const {
  return ((((value_ << 6U) | (high_ & kTailBits)) + 1) << (6U * (missing_ - 1U))) - 1;
}

}  // namespace berth::worker
