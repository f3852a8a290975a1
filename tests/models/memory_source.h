#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

#include "common/gguf/byte_reader.h"

namespace berth::test_models {

// A file's bytes in memory, for the header reader: can end early and fail, as files do.
class MemorySource : public gguf::ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}

  // Reads at or beyond `offset` fail with that errno.
  void fail_at(std::uint64_t offset, int error_number) {
    fails_at_ = offset;
    error_number_ = error_number;
  }
  // Every read gives at most so many bytes.
  void limit_reads(std::size_t bytes) { most_ = bytes; }
  [[nodiscard]] std::size_t reads() const { return reads_; }

  std::ptrdiff_t read_at(void* out, std::size_t count, std::uint64_t offset) override {
    ++reads_;
    if (offset >= fails_at_) return -error_number_;
    if (offset >= bytes_.size()) return 0;
    const std::size_t part = std::min({count, most_, bytes_.size() - offset});
    std::memcpy(out, bytes_.data() + offset, part);
    return static_cast<std::ptrdiff_t>(part);
  }

 private:
  std::string_view bytes_;
  std::uint64_t fails_at_ = std::numeric_limits<std::uint64_t>::max();
  int error_number_ = EIO;
  std::size_t most_ = std::numeric_limits<std::size_t>::max();
  std::size_t reads_ = 0;
};

}  // namespace berth::test_models
