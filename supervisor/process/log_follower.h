#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/fd.h"
#include "common/result.h"

namespace berth::process {

// Reads a model's log as it is, and what is appended to it, over rotations and cuts. Owns its fds
// and a place in the file. One thread at a time; blocks on the file system, not on new text.
class LogFollower {
 public:
  // Starts `lines` before the end of what is there, or at the begin of the live file where
  // `lines` is absent. With `follow` a file that does not exist yet is waited for; without it that
  // is kNotFound. Errors: also kInternal where it is no regular file or cannot be read.
  static Result<LogFollower> open(const std::string& path, std::optional<std::uint32_t> lines,
                                  bool follow);

  // Becomes readable when there may be more to read. Negative where the kernel grants no inotify,
  // or without `follow`: then read() again every 500 ms.
  [[nodiscard]] int wait_fd() const { return inotify_.get(); }

  // The next bytes, at most `most`; empty when there are no more for now. Errors: kInternal.
  Result<std::string> read(std::size_t most = kChunkBytes);

  static constexpr std::size_t kChunkBytes = 64UL * 1024UL;

 private:
  explicit LogFollower(std::string path) : path_(std::move(path)) {}
  void watch();
  Status open_file();
  [[nodiscard]] bool replaced() const;

  std::string path_;
  bool follow_ = false;
  UniqueFd inotify_;
  UniqueFd file_;
  std::uint64_t offset_ = 0;  // of the log (log_cut.h)
};

}  // namespace berth::process
