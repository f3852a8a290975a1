#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>

// The library is used header-only: one function, and no shared library to load at a worker's start.
#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

namespace berth::gguf {

// Where a header's bytes come from: a file, or memory in tests.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  // Reads up to `count` bytes at `offset`: how many, 0 at the end, or a negative errno.
  virtual std::ptrdiff_t read_at(void* out, std::size_t count, std::uint64_t offset) = 0;
};

// Reads a source from its beginning through a bounded buffer and hashes what it passes. It is not
// mapped: a file that is cut meanwhile must give an error and not a signal. One thread, for the
// length of one header. After the first failure every further call fails.
class ByteReader {
 public:
  enum class Failure : std::uint8_t {
    kNone,
    kEnd,     // more was asked for than the source has
    kShrunk,  // the source ended before its stated size
    kError,   // the source failed: error_number()
    kLimit,   // more was asked for than the reader may read
  };

  // `size` is what the source says that it holds; nothing is read beyond the first `limit` bytes.
  ByteReader(ByteSource& source, std::uint64_t size, std::uint64_t limit);

  [[nodiscard]] std::uint64_t position() const { return buffer_offset_ + at_; }
  [[nodiscard]] std::uint64_t remaining() const { return size_ - position(); }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] Failure failure() const { return failure_; }
  [[nodiscard]] int error_number() const { return error_number_; }

  // Little-endian, as is the machine.
  template <typename Number>
  requires std::is_arithmetic_v<Number>
  bool read(Number& out) {
    if (filled_ - at_ < sizeof(Number)) return read_slowly(&out, sizeof(Number));
    std::memcpy(&out, buffer_.get() + at_, sizeof(Number));
    at_ += sizeof(Number);
    return true;
  }

  // Replaces `out` by the next `count` bytes; allocates only what the source can still hold.
  bool read_text(std::string& out, std::uint64_t count);

  bool skip(std::uint64_t count) {
    if (filled_ - at_ < count) return read_slowly(nullptr, count);
    at_ += static_cast<std::size_t>(count);
    return true;
  }

  // XXH3 of all bytes before position().
  [[nodiscard]] std::uint64_t hash() const;

 private:
  static constexpr std::size_t kBufferBytes = 128U << 10U;

  // Whether the next `count` bytes may be asked for; says why not.
  bool has(std::uint64_t count);
  // Copies to `out`, or drops where that is null.
  bool read_slowly(void* out, std::uint64_t count);
  bool refill();

  ByteSource& source_;
  std::uint64_t size_;
  std::uint64_t end_;  // of what may be read
  std::size_t capacity_;
  std::unique_ptr<char[]> buffer_;
  std::uint64_t buffer_offset_ = 0;  // of the buffer's first byte in the source
  std::size_t filled_ = 0;
  std::size_t at_ = 0;
  Failure failure_ = Failure::kNone;
  int error_number_ = 0;
  XXH3_state_t hash_state_;  // of what lies before the buffer
};

}  // namespace berth::gguf
