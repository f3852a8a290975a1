#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "common/result.h"
#include "supervisor/catalog/config.h"

namespace berth::catalog {

// Sees files come, go and change in the model directories, in their sub-directories and beside the
// configured paths (L23), through inotify. Owns its file descriptor; move-only.
//
// open() blocks on the file system: run it on the pool, before each scan, so that nothing that
// happens during the scan is missed and new sub-directories are watched. fd() and drain() do not
// block; use them on one thread. What inotify does not report (network file systems, targets of
// links, directories that do not exist yet) is found by comparing stat_stamp() every 30 s.
class DirectoryWatch {
 public:
  // A change is worth a scan when nothing more happened for this long.
  static constexpr std::chrono::milliseconds kQuietTime{500};

  // Directories that cannot be watched are passed over. Errors: kInternal where inotify itself
  // cannot be used (no instance left).
  static Result<DirectoryWatch> open(const Config& config);

  // The same for one file, which need not exist yet: its folder is watched, and drain() tells when
  // the file came, changed or went.
  static Result<DirectoryWatch> open_file(const std::string& path);

  // Readable when there is something to drain.
  [[nodiscard]] int fd() const { return fd_.get(); }

  // Takes what was reported. True: something that matters for the catalogue changed.
  bool drain();

 private:
  explicit DirectoryWatch(UniqueFd fd) : fd_(std::move(fd)) {}
  static Result<DirectoryWatch> make();
  [[nodiscard]] std::optional<int> add(const std::string& dir) const;
  [[nodiscard]] bool matters(std::uint32_t mask, int watch, std::string_view name) const;

  UniqueFd fd_;
  std::vector<int> roots_;          // watches of the model directories themselves
  std::vector<std::string> names_;  // of configured files
  bool models_ = true;              // *.gguf matters, too
};

}  // namespace berth::catalog
