#include "supervisor/cli/doctor/kernel.h"

#include <linux/magic.h>
#include <linux/seccomp.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "common/fd.h"
#include "common/units.h"

namespace berth::cli {
namespace {

constexpr char kCgroups[] = "/sys/fs/cgroup";
constexpr rlim_t kFewFiles = 1024;
constexpr rlim_t kLeastFiles = 256;

// LANDLOCK_CREATE_RULESET_VERSION asks for the version of the interface; a number or an errno.
long landlock_version() {
  return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1U);
}

bool has_clone3() {
  return ::syscall(SYS_clone3, nullptr, 0) < 0 && errno != ENOSYS;
}

bool has_pidfd() {
  const UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  return static_cast<bool>(fd);
}

bool has_seccomp() {
  const unsigned action = SECCOMP_RET_KILL_PROCESS;
  return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

std::string limit_text(rlim_t value) {
  return value == RLIM_INFINITY ? "unlimited" : std::to_string(value);
}

std::string size_text(rlim_t value) {
  return value == RLIM_INFINITY ? "unlimited" : format_bytes(value);
}

Check check_cgroups() {
  struct statfs status {};
  if (::statfs(kCgroups, &status) != 0) {
    return warning("cgroup", "there is no " + std::string(kCgroups),
                   "berth works, but cannot limit the memory of its workers");
  }
  if (status.f_type == CGROUP2_SUPER_MAGIC) {
    const std::string controllers = std::string(kCgroups) + "/cgroup.controllers";
    if (::access(controllers.c_str(), R_OK) == 0) return ok("cgroup", "version 2");
    return ok("cgroup", "version 2, controllers not visible from here");
  }
  return warning("cgroup", "version 1",
                 "berth works, but memory limits and pressure per worker need version 2 "
                 "(systemd.unified_cgroup_hierarchy=1 on the kernel's command line)");
}

}  // namespace

Checks check_kernel() {
  Checks checks;
  utsname name{};
  ::uname(&name);
  const bool clone3 = has_clone3();
  const bool pidfd = has_pidfd();
  if (clone3 && pidfd) {
    checks.push_back(ok("kernel", std::string(name.release) + ", has clone3 and pidfd"));
  } else {
    checks.push_back(error(
        "kernel",
        std::string(name.release) + " lacks " + (clone3 ? "" : "clone3 ") + (pidfd ? "" : "pidfd"),
        "Linux 5.10 or newer is needed; in a container the runtime may forbid "
        "them"));
  }
  const long landlock = landlock_version();
  if (landlock > 0) {
    checks.push_back(ok("landlock", "version " + std::to_string(landlock)));
  } else {
    checks.push_back(warning("landlock", "not there",
                             "workers are confined less; add lsm=landlock,… to the kernel's "
                             "command line"));
  }
  if (has_seccomp()) {
    checks.push_back(ok("seccomp", "filters are there"));
  } else {
    checks.push_back(warning("seccomp", "not there", "workers are confined less"));
  }
  checks.push_back(check_cgroups());
  return checks;
}

Checks check_limits() {
  Checks checks;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const std::string found =
      limit_text(files.rlim_cur) + " open files, at most " + limit_text(files.rlim_max);
  if (files.rlim_max < kLeastFiles) {
    checks.push_back(error("open files", found, "raise it: LimitNOFILE= or ulimit -n"));
  } else if (files.rlim_max < kFewFiles) {
    checks.push_back(
        warning("open files", found, "many clients need more: LimitNOFILE= or ulimit -n"));
  } else {
    checks.push_back(ok("open files", found));
  }
  rlimit locked{};
  ::getrlimit(RLIMIT_MEMLOCK, &locked);
  checks.push_back(ok("locked memory", size_text(locked.rlim_cur)));
  return checks;
}

}  // namespace berth::cli
