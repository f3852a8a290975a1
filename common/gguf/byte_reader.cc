#include "common/gguf/byte_reader.h"

#include <algorithm>
#include <bit>

namespace berth::gguf {

static_assert(std::endian::native == std::endian::little,
              "GGUF is read as it lies in the file, little-endian");

ByteReader::ByteReader(ByteSource& source, std::uint64_t size, std::uint64_t limit)
    : source_(source),
      size_(size),
      end_(std::min(size, limit)),
      capacity_(static_cast<std::size_t>(std::min<std::uint64_t>(kBufferBytes, size))),
      buffer_(std::make_unique_for_overwrite<char[]>(capacity_)) {
  XXH3_64bits_reset(&hash_state_);
}

bool ByteReader::read_text(std::string& out, std::uint64_t count) {
  out.clear();
  if (!has(count)) return false;
  out.resize(static_cast<std::size_t>(count));
  return read_slowly(out.data(), count);
}

std::uint64_t ByteReader::hash() const {
  XXH3_state_t state;
  XXH3_copyState(&state, &hash_state_);
  XXH3_64bits_update(&state, buffer_.get(), at_);
  return XXH3_64bits_digest(&state);
}

bool ByteReader::has(std::uint64_t count) {
  if (failure_ != Failure::kNone) return false;
  if (count > remaining()) {
    failure_ = Failure::kEnd;
  } else if (count > end_ - position()) {
    failure_ = Failure::kLimit;
  }
  return failure_ == Failure::kNone;
}

bool ByteReader::read_slowly(void* out, std::uint64_t count) {
  if (!has(count)) return false;
  char* to = static_cast<char*>(out);
  while (count > 0) {
    if (at_ == filled_ && !refill()) return false;
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(count, filled_ - at_));
    if (to != nullptr) {
      std::memcpy(to, buffer_.get() + at_, part);
      to += part;
    }
    at_ += part;
    count -= part;
  }
  return true;
}

bool ByteReader::refill() {
  XXH3_64bits_update(&hash_state_, buffer_.get(), filled_);
  buffer_offset_ += filled_;
  filled_ = 0;
  at_ = 0;
  const auto wanted =
      static_cast<std::size_t>(std::min<std::uint64_t>(capacity_, end_ - buffer_offset_));
  const std::ptrdiff_t got = source_.read_at(buffer_.get(), wanted, buffer_offset_);
  if (got < 0) {
    failure_ = Failure::kError;
    error_number_ = static_cast<int>(-got);
    return false;
  }
  if (got == 0) {
    failure_ = Failure::kShrunk;
    return false;
  }
  filled_ = static_cast<std::size_t>(got);
  return true;
}

}  // namespace berth::gguf
