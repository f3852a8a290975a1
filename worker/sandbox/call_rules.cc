#include "worker/sandbox/call_rules.h"

#include <asm/sockios.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "worker/sandbox/call_filter.h"

namespace berth::worker {
namespace {

constexpr std::uint32_t refuse(int error) {
  return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
}

// Never of any use to a worker, or to a driver in it. The list has no more than what container
// runtimes deny to programs on GPUs by default, and what changes files whose names are known,
// which Landlock does not see.
constexpr std::array kDenied = {
    // other processes
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_process_madvise, SYS_pidfd_getfd,
    SYS_tkill,
    // the kernel: interfaces whose faults were the way out of many sandboxes
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_keyctl, SYS_add_key, SYS_request_key,
    SYS_lookup_dcookie, SYS_fanotify_init, SYS_open_by_handle_at,
    // the machine
    SYS_kexec_load, SYS_kexec_file_load, SYS_init_module, SYS_finit_module, SYS_delete_module,
    SYS_reboot, SYS_swapon, SYS_swapoff, SYS_acct, SYS_quotactl, SYS_quotactl_fd, SYS_sethostname,
    SYS_setdomainname, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex,
    SYS_syslog, SYS_vhangup, SYS_personality,
#if defined(__x86_64__)
    SYS_iopl, SYS_ioperm, SYS_modify_ldt,
#endif
    // the view of the machine
    SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_fsopen,
    SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_move_mount, SYS_open_tree, SYS_mount_setattr,
    // who the process is
    SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setfsuid,
    SYS_setfsgid, SYS_setgroups, SYS_capset,
    // files by name
    SYS_truncate, SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_setxattr, SYS_lsetxattr,
    SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_utimensat,
#if defined(__x86_64__)
    SYS_chmod, SYS_chown, SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat,
#endif
    // sockets of other processes: berthd's own would take this process for its user
    SYS_connect};

// What came later may be a new way to do what is denied here: setxattrat() did.
constexpr std::uint32_t kNewestReviewed = 462;  // mseal(), Linux 6.10

// Newer than the headers of the oldest release that berth is built on.
constexpr long kFchmodat2 = 452;

// Callers go another way without these. Their arguments are in memory, where a filter cannot look.
constexpr std::array kAbsent = {SYS_clone3, SYS_openat2, SYS_io_uring_setup, SYS_io_uring_enter,
                                SYS_io_uring_register};

constexpr std::uint32_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                      CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr std::uint32_t kSocketType = 0xF;  // without its flags
constexpr std::uint32_t kPidfdThread = O_EXCL;

void forbid_sockets(CallFilter& filter) {
  for (const auto call : {SYS_socket, SYS_socketpair}) {
    filter.decide(call, {{0, ~0U, AF_UNIX, false}}, refuse(EAFNOSUPPORT));
    // A datagram can be sent to any socket's name, without a connection.
    filter.decide(call, {{1, kSocketType, SOCK_DGRAM}}, refuse(EPERM));
    filter.decide(call, {{1, kSocketType, SOCK_RAW}}, refuse(EPERM));
  }
}

// Landlock keeps signals within the sandbox only since Linux 6.12.
void spare_supervisor(CallFilter& filter, pid_t supervisor) {
  const auto self = static_cast<std::uint32_t>(::getpid());
  const auto parent = static_cast<std::uint32_t>(supervisor);
  const auto denied = refuse(EPERM);
  // The number of any of its threads stands for the whole process, so only this process itself may
  // be named. berth-template is ended by its pidfd.
  filter.decide(SYS_kill, {{0, ~0U, self, false}}, denied);
  filter.decide(SYS_pidfd_open, {{1, kPidfdThread, kPidfdThread}}, denied);
  filter.decide(SYS_pidfd_open, {{0, ~0U, parent}}, denied);
  // A descriptor's owner gets the signal that was chosen for it.
  for (const std::uint32_t command :
       std::array<std::uint32_t, 3>{F_SETOWN, F_SETOWN_EX, F_SETSIG}) {
    filter.decide(SYS_fcntl, {{1, ~0U, command}}, denied);
  }
  for (const std::uint32_t request : std::array<std::uint32_t, 2>{FIOSETOWN, SIOCSPGRP}) {
    filter.decide(SYS_ioctl, {{1, ~0U, request}}, denied);
  }
  for (const auto call : {SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo}) {
    filter.decide(call, {{0, ~0U, self, false}}, denied);
  }
}

// A limit of CPU time ends a process, and the number of a thread stands for all of it. 0 is the
// caller: the C library sets and reads its own limits with it, and berth-template does.
void keep_to_own_limits(CallFilter& filter) {
  filter.decide(SYS_prlimit64, {{0, ~0U, 0, false}}, refuse(EPERM));
}

// What the supervisor ends and finds its descendants by: their process group (L3), the signal at
// its own death, and that it is the one to whom orphans fall (L4).
void stay_a_descendant(CallFilter& filter) {
  const auto denied = refuse(EPERM);
  filter.decide(SYS_setsid, denied);
  filter.decide(SYS_setpgid, denied);
  filter.decide(SYS_prctl, {{0, ~0U, PR_SET_CHILD_SUBREAPER}}, denied);
  // berth-template asks for SIGKILL. The kernel refuses what does not fit into the low half.
  filter.decide(SYS_prctl, {{0, ~0U, PR_SET_PDEATHSIG}, {1, ~0U, SIGKILL, false}}, denied);
}

}  // namespace

bool can_forbid_calls() {
  const std::uint32_t action = SECCOMP_RET_KILL_PROCESS;
  return CallFilter::supported() &&
         ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

int forbid_calls(pid_t supervisor) {
  CallFilter filter;
  // Callers do without what their kernel has not. That takes the numbers of x32 too.
  filter.decide_from(kNewestReviewed + 1, refuse(ENOSYS));
  for (const auto call : kDenied) filter.decide(call, refuse(EPERM));
  filter.decide(kFchmodat2, refuse(EPERM));
  for (const auto call : kAbsent) filter.decide(call, refuse(ENOSYS));
  filter.decide(SYS_clone, {{0, kNamespaces, 0, false}}, refuse(EPERM));
  forbid_sockets(filter);
  spare_supervisor(filter, supervisor);
  keep_to_own_limits(filter);
  stay_a_descendant(filter);
  // Words put into a terminal's mouth: a worker that was started by hand has one.
  for (const std::uint32_t request : {std::uint32_t{TIOCSTI}, std::uint32_t{TIOCLINUX}}) {
    filter.decide(SYS_ioctl, {{1, ~0U, request}}, refuse(EPERM));
  }
  // Empties a file that is opened to be read, which Landlock does not see before Linux 6.2.
  constexpr std::uint32_t kEmptying = O_ACCMODE | O_TRUNC;
  // Access mode 3 asks neither to read nor to write, and empties as well.
  for (const std::uint32_t mode : std::array<std::uint32_t, 2>{O_RDONLY, O_ACCMODE}) {
    filter.decide(SYS_openat, {{2, kEmptying, mode | O_TRUNC}}, refuse(EPERM));
#if defined(__x86_64__)
    filter.decide(SYS_open, {{1, kEmptying, mode | O_TRUNC}}, refuse(EPERM));
#endif
  }
  // Without SPEC_ALLOW kernels before 5.16 would switch speculation of loads off, which costs
  // every model some of its speed.
  return filter.install(SECCOMP_RET_ALLOW,
                        SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW);
}

}  // namespace berth::worker
