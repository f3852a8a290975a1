#pragma once

#include <string>
#include <string_view>

#include "common/result.h"

namespace berth::process {

// The control group (version 2) of this process, and whether it is ours to divide. Nothing here
// changes anything. Formats: cgroups(7), proc_pid_mountinfo(5).

// Where the cgroup v2 of a process is in the file system: from the text of its /proc/PID/cgroup
// (the line "0::/path") and of the mountinfo of whoever looks, also where version 2 is mounted
// beside version 1 (/sys/fs/cgroup/unified). Errors: kNotFound: it has none, or none that can be
// reached from here.
Result<std::string> cgroup_directory(std::string_view membership, std::string_view mounts);

// Where the one of this process is, and where version 2 is mounted. Blocks a moment. Errors: ditto.
Result<std::string> own_cgroup();
Result<std::string> cgroup_mount();

// Whether this process is what systemd executed for a service: INVOCATION_ID is set, and
// SYSTEMD_EXEC_PID (where there is one; both are inherited) is this process.
bool runs_as_service();

// Whether the service manager gave the directory of a cgroup to this process: it can be divided (it
// and its cgroup.procs and cgroup.subtree_control are writable), systemd's mark or its owner says
// that it was delegated (the parent belongs to another user), and no process but this one is in it.
// Errors: kNotFound with what is missing.
Status check_delegated(const std::string& directory);

// The cgroup of this process, where it runs as a service and has one that was delegated to it.
// Errors: kNotFound with what is missing.
Result<std::string> delegated_cgroup();

}  // namespace berth::process
