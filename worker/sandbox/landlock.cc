#include "worker/sandbox/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace berth::worker {
namespace {

// As in Linux 6.12's linux/landlock.h; older kernels take it as long as what they do not know is 0.
struct Attributes {
  std::uint64_t files = 0;
  std::uint64_t network = 0;
  std::uint64_t scopes = 0;
};
constexpr std::uint64_t kBindAndConnectTcp = 3;
constexpr std::uint64_t kAbstractSocketsAndSignals = 3;

constexpr std::uint64_t kFirstRights = (1U << 13U) - 1;  // of version 1
constexpr std::uint64_t kMove = 1U << 13U;
constexpr std::uint64_t kRightsOfFiles = FileAccess::kExecute | FileAccess::kWrite |
                                         FileAccess::kReadFile | FileAccess::kTruncate |
                                         FileAccess::kControlDevice;

std::uint64_t rights_of(int version) {
  std::uint64_t rights = kFirstRights;
  if (version >= LandlockVersion::kMove) rights |= kMove;
  if (version >= LandlockVersion::kTruncate) rights |= FileAccess::kTruncate;
  if (version >= LandlockVersion::kControlDevice) rights |= FileAccess::kControlDevice;
  return rights;
}

}  // namespace

int LandlockVersion::here() {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version > 0 ? static_cast<int>(version) : 0;
}

LandlockRules::LandlockRules(int version) : known_(rights_of(version)) {
  Attributes attributes;
  attributes.files = known_;
  if (version >= LandlockVersion::kNetwork) attributes.network = kBindAndConnectTcp;
  if (version >= LandlockVersion::kSignals) attributes.scopes = kAbstractSocketsAndSignals;
  const long rules = ::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
  if (rules < 0) error_ = errno;
  rules_.reset(static_cast<int>(rules));
}

bool LandlockRules::allow(const std::string& path, std::uint64_t access) {
  const UniqueFd place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  return place && allow(place.get(), access);
}

bool LandlockRules::allow(int place, std::uint64_t access) {
  struct stat status {};
  if (::fstat(place, &status) != 0) return false;
  access &= known_;
  if (!S_ISDIR(status.st_mode)) access &= kRightsOfFiles;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = access;
  rule.parent_fd = place;
  return ::syscall(SYS_landlock_add_rule, rules_.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
}

int LandlockRules::enforce() {
  if (error_ != 0) return error_;
  return ::syscall(SYS_landlock_restrict_self, rules_.get(), 0) == 0 ? 0 : errno;
}

}  // namespace berth::worker
