#include "worker/sandbox/sandbox.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>

#include "worker/sandbox/call_rules.h"
#include "worker/sandbox/landlock.h"

namespace berth::worker {
namespace {

struct PartInfo {
  std::string_view name;
  int landlock_version;  // that has it; 0: it is not Landlock's
  std::string_view needs;
};
// In the order of SandboxPart.
constexpr std::array kParts = {
    PartInfo{"files", LandlockVersion::kFiles, "Linux 5.13 with Landlock"},
    PartInfo{"truncation", LandlockVersion::kTruncate, "Linux 6.2"},
    PartInfo{"network", LandlockVersion::kNetwork, "Linux 6.7"},
    PartInfo{"device_control", LandlockVersion::kControlDevice, "Linux 6.10"},
    PartInfo{"signals", LandlockVersion::kSignals, "Linux 6.12"},
    PartInfo{"system_calls", 0, "seccomp filters"},
};
static_assert(kParts.size() == kSandboxParts);

SandboxReport report(int landlock_version, bool system_calls) {
  SandboxReport result;
  result.landlock_version = landlock_version;
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    const int needed = kParts.at(i).landlock_version;
    result.parts.at(i) = needed == 0 ? system_calls : landlock_version >= needed;
  }
  return result;
}

// Returns the version of Landlock that holds now; 0: none.
int restrict_files(const SandboxPlaces& places) {
  const int version = LandlockVersion::here();
  if (version == 0) return 0;
  const auto all = worker_grants(places);
  const auto devices = device_grants(places.devices);
  LandlockRules rules(version);
  for (const auto& grant : all) rules.allow(grant.path, grant.access);
  for (const auto& grant : devices) rules.allow(grant.path, grant.access);
  // A rule is for the inode, and /proc would make another one once memory runs short and it has
  // forgotten this one: it does not as long as somebody has it open.
  const int self = ::open("/proc/self", O_PATH | O_CLOEXEC);
  rules.allow(self, FileAccess::kRead);
  return rules.enforce() == 0 ? version : 0;
}

}  // namespace

bool SandboxReport::complete() const {
  return std::all_of(parts.begin(), parts.end(), [](bool there) { return there; });
}

std::string SandboxReport::json() const {
  std::string text = "{\"landlock\":" + std::to_string(landlock_version) + ",\"parts\":{";
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    text.append(i == 0 ? "\"" : ",\"").append(kParts.at(i).name).append("\":");
    text.append(parts.at(i) ? "true" : "false");
  }
  return text.append("},\"complete\":").append(complete() ? "true" : "false").append("}\n");
}

std::string SandboxReport::missing() const {
  std::string text;
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    if (parts.at(i)) continue;
    text.append(text.empty() ? "" : ", ").append(kParts.at(i).name);
    text.append(" (needs ").append(kParts.at(i).needs).append(")");
  }
  return text;
}

SandboxReport probe_sandbox() {
  return report(LandlockVersion::here(), can_forbid_calls());
}

SandboxReport enter_sandbox(const SandboxPlaces& places, pid_t supervisor) {
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const int version = restrict_files(places);
  return report(version, forbid_calls(supervisor) == 0);
}

}  // namespace berth::worker
