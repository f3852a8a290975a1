#include "common/uuid.h"

#include <sys/random.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <mutex>

namespace berth {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

bool dash_before(std::size_t byte) {
  return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

std::uint64_t random_word() {
  std::uint64_t word = 0;
  // Never short and never interrupted for up to 256 bytes, once the kernel's pool is initialised.
  if (::getrandom(&word, sizeof(word), 0) == static_cast<ssize_t>(sizeof(word))) return word;
  // No getrandom (a sandbox): ids stay ordered and unique within the process, as the counter sees
  // to that; between processes the clock and the process id tell them apart.
  std::timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto nanoseconds = static_cast<std::uint64_t>(now.tv_nsec);
  const auto process = static_cast<std::uint64_t>(::getpid());
  return (nanoseconds * 0x9E3779B97F4A7C15ULL) ^ (process << 32U);
}

}  // namespace

Uuid Uuid::make(WallTime time, std::uint64_t random_high, std::uint64_t random_low) {
  const auto milliseconds = static_cast<std::uint64_t>(time.time_since_epoch().count());
  Uuid id;
  for (std::size_t i = 0; i < 6; ++i) {
    id.bytes_.at(i) = static_cast<std::uint8_t>(milliseconds >> (40 - 8 * i));
  }
  id.bytes_[6] = static_cast<std::uint8_t>(0x70U | ((random_high >> 8U) & 0x0FU));
  id.bytes_[7] = static_cast<std::uint8_t>(random_high);
  for (std::size_t i = 0; i < 8; ++i) {
    id.bytes_.at(8 + i) = static_cast<std::uint8_t>(random_low >> (56 - 8 * i));
  }
  id.bytes_[8] = static_cast<std::uint8_t>(0x80U | (id.bytes_[8] & 0x3FU));
  return id;
}

Uuid Uuid::parse(std::string_view text) {
  if (text.size() != 36) return {};
  Uuid id;
  std::size_t at = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    if (dash_before(i) && text[at++] != '-') return {};
    const char* const digits = text.data() + at;
    if (std::from_chars(digits, digits + 2, id.bytes_.at(i), 16).ptr != digits + 2) return {};
    at += 2;
  }
  return id;
}

std::string Uuid::to_string() const {
  std::string out;
  out.reserve(36);
  for (std::size_t i = 0; i < 16; ++i) {
    if (dash_before(i)) out.push_back('-');
    out.push_back(kHex[bytes_.at(i) >> 4U]);
    out.push_back(kHex[bytes_.at(i) & 0x0FU]);
  }
  return out;
}

Uuid SystemIdSource::next() {
  const auto now =
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const std::uint64_t low = random_word();
  const std::uint64_t start = random_word();
  const std::scoped_lock lock(mutex_);
  // RFC 9562, section 6.2, method 1: the 12 bits behind the time count within one millisecond.
  // The time never steps back; when the counter runs over, the time runs ahead of the clock.
  if (now > last_time_) {
    last_time_ = now;
    counter_ = static_cast<std::uint32_t>(start & 0x7FFU);
  } else if (++counter_ > 0xFFFU) {
    last_time_ += std::chrono::milliseconds(1);
    counter_ = 0;
  }
  return Uuid::make(last_time_, counter_, low);
}

}  // namespace berth
