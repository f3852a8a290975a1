#pragma once

#include <cstdint>
#include <string>

#include "common/fd.h"

namespace berth::worker {

// What may be done with a file or below a folder, as the kernel numbers it (linux/landlock.h of
// Linux 6.10; the header of the build machine may be older).
struct FileAccess {
  static constexpr std::uint64_t kExecute = 1U << 0U;
  static constexpr std::uint64_t kWrite = 1U << 1U;
  static constexpr std::uint64_t kReadFile = 1U << 2U;
  static constexpr std::uint64_t kReadFolder = 1U << 3U;
  static constexpr std::uint64_t kRemoveFile = 1U << 5U;
  static constexpr std::uint64_t kMakeFolder = 1U << 7U;
  static constexpr std::uint64_t kMakeFile = 1U << 8U;
  static constexpr std::uint64_t kTruncate = 1U << 14U;
  static constexpr std::uint64_t kControlDevice = 1U << 15U;

  static constexpr std::uint64_t kRead = kReadFile | kReadFolder;
  static constexpr std::uint64_t kDevice = kRead | kWrite | kControlDevice;
  static constexpr std::uint64_t kKeepFiles =
      kRead | kWrite | kTruncate | kMakeFile | kMakeFolder | kRemoveFile;
};

// The version of Landlock's interface that first had something.
struct LandlockVersion {
  static constexpr int kFiles = 1;          // Linux 5.13
  static constexpr int kMove = 2;           // 5.19
  static constexpr int kTruncate = 3;       // 6.2
  static constexpr int kNetwork = 4;        // 6.7
  static constexpr int kControlDevice = 5;  // 6.10
  static constexpr int kSignals = 6;        // 6.12, with abstract Unix sockets

  // Of this kernel; 0: it has none, or has it switched off.
  static int here();
};

// A set of rules in the making. Everything that the kernel's Landlock knows is denied but what was
// allowed. One thread.
class LandlockRules {
 public:
  // `version` as here() says, at least 1.
  explicit LandlockRules(int version);

  // Rights that `path` cannot have are left out: those of folders for a file, those that the
  // kernel does not know. False where it is not there, or cannot be allowed. Follows symbolic
  // links: the rule is for the file that is there now.
  bool allow(const std::string& path, std::uint64_t access);
  // `place`: opened with O_PATH.
  bool allow(int place, std::uint64_t access);

  // For the calling thread and all that it starts, for good; it needs NO_NEW_PRIVS. Returns 0 or
  // an errno.
  int enforce();

 private:
  std::uint64_t known_;
  UniqueFd rules_;
  int error_ = 0;
};

}  // namespace berth::worker
