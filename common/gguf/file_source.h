#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/fd.h"
#include "common/gguf/byte_reader.h"
#include "common/result.h"

namespace berth::gguf {

// A regular file, opened for reading. Owns the descriptor.
class FileSource : public ByteSource {
 public:
  // Never blocks on a pipe or a device: only regular files are taken. Errors: kNotFound,
  // kPermissionDenied, else kInvalidArgument; the message begins with the file's name.
  static Result<FileSource> open(const std::string& path);

  FileSource(FileSource&& other) noexcept
      : fd_(std::move(other.fd_)), size_(other.size_), modified_unix_ms_(other.modified_unix_ms_) {}

  std::ptrdiff_t read_at(void* out, std::size_t count, std::uint64_t offset) override;

  // As of open().
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] std::int64_t modified_unix_ms() const { return modified_unix_ms_; }

 private:
  FileSource(UniqueFd fd, std::uint64_t size, std::int64_t modified_unix_ms)
      : fd_(std::move(fd)), size_(size), modified_unix_ms_(modified_unix_ms) {}

  UniqueFd fd_;
  std::uint64_t size_;
  std::int64_t modified_unix_ms_;
};

// The last part of a path, fit for a message: printable and at most 255 bytes.
std::string shown_file_name(const std::string& path);

}  // namespace berth::gguf
