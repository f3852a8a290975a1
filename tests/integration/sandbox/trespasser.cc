// A worker whose model has taken it over: instead of loading it tries what it must not, on the
// thread that would load, and prints "NAME ok" or "NAME ERRNO" for each. The model file names what
// lies outside: lines of "NAME PATH".
//
// It also runs where the sandbox is off or does not hold, perhaps as root: no attempt may do harm
// where it succeeds, to anything but the test's own folder.

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "worker/service/options.h"
#include "worker/service/process_limits.h"
#include "worker/service/serve.h"
#include "worker/template/template_process.h"
#include "worker/template/template_renderer.h"

namespace {

void tell(const std::string& name, bool done) {
  const std::string line = name + " " + (done ? "ok" : ::strerrorname_np(errno)) + "\n";
  [[maybe_unused]] const auto size = ::write(STDOUT_FILENO, line.data(), line.size());
}

bool close_if(int fd) {
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

bool open_it(const std::string& path, int flags) {
  return close_if(::open(path.c_str(), flags | O_CLOEXEC, 0600));
}

bool socket_of(int family, int type) {
  return close_if(::socket(family, type | SOCK_CLOEXEC, 0));
}

// What execve says in a child; 0 where the program ran.
bool execute(const char* program) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  const pid_t child = ::fork();
  if (child == 0) {
    const char* const argv[] = {program, "--version", nullptr};
    ::close(STDOUT_FILENO);
    ::close(STDERR_FILENO);
    ::execv(program, const_cast<char* const*>(argv));
    const int error = errno;
    [[maybe_unused]] const auto size = ::write(ends[1], &error, sizeof error);
    ::_exit(1);
  }
  ::close(ends[1]);
  int error = 0;
  [[maybe_unused]] const auto size = ::read(ends[0], &error, sizeof error);
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  errno = error;
  return child > 0 && error == 0;
}

bool dumps_core() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGABRT, SIG_DFL);
    std::abort();
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  errno = ECHILD;
  return WIFSIGNALED(status) && WCOREDUMP(status);
}

bool connect_to(const std::string& path, int type) {
  const int fd = ::socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int connected = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  ::close(fd);
  errno = error;
  return connected == 0;
}

long call(long number, long first = 0, long second = 0, long third = 0) {
  return ::syscall(number, first, second, third, 0, 0, 0);
}

bool clones_with_namespace() {
  const long child = call(SYS_clone, CLONE_NEWUSER | SIGCHLD);
  if (child == 0) ::_exit(0);
  if (child > 0) ::waitpid(static_cast<pid_t>(child), nullptr, 0);
  return child > 0;
}

void try_files(const std::map<std::string, std::string>& places) {
  const auto at = [&](const char* name) { return places.at(name); };
  tell("read_model", open_it(at("model"), O_RDONLY));
  tell("read_shard", open_it(at("shard"), O_RDONLY));
  tell("write_model", open_it(at("model"), O_WRONLY));
  tell("empty_model", open_it(at("model"), O_RDONLY | O_TRUNC));
  tell("empty_model_by_mode_3", open_it(at("model"), O_ACCMODE | O_TRUNC));
  tell("truncate_model", ::truncate(at("model").c_str(), 0) == 0);
  tell("remove_model", ::unlink(at("model").c_str()) == 0);
  tell("chmod_model", ::chmod(at("model").c_str(), 0777) == 0);
  tell("read_other_model", open_it(at("other"), O_RDONLY));
  tell("write_other", open_it(at("other"), O_WRONLY));
  tell("remove_other", ::unlink(at("other").c_str()) == 0);
  tell("list_folder", open_it(at("folder"), O_RDONLY | O_DIRECTORY));
  tell("make_file", open_it(at("folder") + "/new", O_WRONLY | O_CREAT));
  tell("make_beside_socket", open_it(at("socket_folder") + "/new", O_WRONLY | O_CREAT));
  tell("make_folder", ::mkdir((at("folder") + "/d").c_str(), 0700) == 0);
  tell("link", ::link(at("model").c_str(), (at("folder") + "/l").c_str()) == 0);
  tell("symlink", ::symlink("x", (at("folder") + "/s").c_str()) == 0);
  tell("move", ::rename(at("other").c_str(), (at("folder") + "/m").c_str()) == 0);
  tell("read_passwords", open_it("/etc/shadow", O_RDONLY));
  tell("read_users", open_it("/etc/passwd", O_RDONLY));
  tell("read_programs", open_it("/bin/sh", O_RDONLY));
  tell("write_tmp", open_it("/tmp", O_WRONLY | O_TMPFILE));
  tell("write_shared_memory", open_it("/dev/shm", O_WRONLY | O_TMPFILE));
  tell("read_own_proc", open_it("/proc/self/status", O_RDONLY));
  tell("write_own_proc", open_it("/proc/self/oom_score_adj", O_WRONLY));
  const auto parent = "/proc/" + std::to_string(::getppid());
  tell("read_parent_memory", open_it(parent + "/mem", O_RDONLY));
  tell("read_parent_status", open_it(parent + "/status", O_RDONLY));
  tell("open_terminal", open_it("/dev/tty", O_RDWR));
  tell("open_kernel_log", open_it("/dev/kmsg", O_RDONLY));
  tell("open_null", open_it("/dev/null", O_WRONLY));
  tell("open_device", open_it(at("device"), O_RDONLY));
}

void try_programs(const std::map<std::string, std::string>& places) {
  tell("execute_shell", execute("/bin/sh"));
  tell("execute_model", execute(places.at("other").c_str()));
  tell("execute_template", execute(berth::worker::template_program_beside_self().c_str()));
  auto helper =
      berth::worker::TemplateProcess::start(berth::worker::template_program_beside_self());
  tell("start_template", helper && !helper->ended());
  tell("dump_core", dumps_core());
}

void try_sockets(const std::map<std::string, std::string>& places) {
  tell("socket_tcp", socket_of(AF_INET, SOCK_STREAM));
  tell("socket_udp", socket_of(AF_INET, SOCK_DGRAM));
  tell("socket_ip6", socket_of(AF_INET6, SOCK_STREAM));
  tell("socket_netlink", socket_of(AF_NETLINK, SOCK_RAW));
  tell("socket_packet", socket_of(AF_PACKET, SOCK_RAW));
  tell("socket_vsock", socket_of(AF_VSOCK, SOCK_STREAM));
  tell("socket_alg", socket_of(AF_ALG, SOCK_SEQPACKET));
  tell("socket_unix", socket_of(AF_UNIX, SOCK_STREAM));
  tell("socket_unix_datagram", socket_of(AF_UNIX, SOCK_DGRAM));
  tell("connect_unix", connect_to(places.at("listener"), SOCK_STREAM));
  std::array<int, 2> ends{};
  tell("socketpair", ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
}

// Nothing here may do harm where the sandbox fails to hold: what would succeed names nothing.
void try_calls() {
  const pid_t parent = ::getppid();
  tell("ptrace_parent", ::ptrace(PTRACE_ATTACH, -1, nullptr, nullptr) == 0);
  tell("signal_parent", ::kill(parent, 0) == 0);
  tell("signal_other", ::kill(1, 0) == 0);
  tell("pidfd_thread", close_if(static_cast<int>(call(SYS_pidfd_open, ::getppid(), O_EXCL))));
  tell("own_descriptor", ::fcntl(STDOUT_FILENO, F_SETOWN, ::getpid()) == 0);
  tell("choose_signal", ::fcntl(STDOUT_FILENO, F_SETSIG, 0) == 0);
  tell("signal_all", ::kill(-1, 0) == 0);
  tell("signal_thread_of_parent", call(SYS_tgkill, parent, parent, 0) == 0);
  tell("pidfd_parent", close_if(static_cast<int>(call(SYS_pidfd_open, parent))));
  rlimit limit{};
  tell("limit_parent", ::prlimit(parent, RLIMIT_NOFILE, nullptr, &limit) == 0);
  tell("read_memory_of_parent", call(SYS_process_vm_readv, parent) == 0);
  tell("mount", ::mount("none", "/nonexistent/berth", "tmpfs", 0, nullptr) == 0);
  tell("unshare_users", ::unshare(CLONE_NEWUSER) == 0);
  tell("unshare_network", ::unshare(CLONE_NEWNET) == 0);
  tell("clone_users", clones_with_namespace());
  tell("clone3", call(SYS_clone3) >= 0);
  tell("chroot", ::chroot("/nonexistent/berth") == 0);
  tell("bpf", call(SYS_bpf) >= 0);
  tell("perf", call(SYS_perf_event_open) >= 0);
  tell("userfaultfd", close_if(static_cast<int>(call(SYS_userfaultfd))));
  tell("io_uring", close_if(static_cast<int>(call(SYS_io_uring_setup, 1))));
  tell("keyctl", call(SYS_keyctl) >= 0);
  tell("setuid", ::setuid(::getuid()) == 0);
  tell("reboot", call(SYS_reboot) == 0);
  tell("kexec", call(SYS_kexec_load) == 0);
  tell("module", call(SYS_init_module) == 0);
}

// One that waits until the worker lets go of the pipe that it reads from.
class Child {
 public:
  Child() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[1]);
      char byte = 0;
      [[maybe_unused]] const auto size = ::read(ends[0], &byte, 1);
      ::_exit(0);
    }
    ::close(ends[0]);
    writing_ = ends[1];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::close(writing_);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int writing_ = -1;
};

// Sets what is there already.
bool keep_limit(pid_t process) {
  rlimit limit{};
  if (::prlimit(process, RLIMIT_CPU, nullptr, &limit) != 0) return false;
  return ::prlimit(process, RLIMIT_CPU, &limit, nullptr) == 0;
}

void try_limits(const std::map<std::string, std::string>& places) {
  const Child child;
  tell("limit_self", keep_limit(0));
  tell("limit_self_by_number", keep_limit(::getpid()));
  tell("limit_child", keep_limit(child.pid()));
  tell("limit_parent_cpu", keep_limit(::getppid()));
  tell("limit_thread_of_parent", keep_limit(std::stoi(places.at("thread"))));
  const rlimit harmless{RLIM_INFINITY, RLIM_INFINITY};
  tell("set_limit_of_child", ::prlimit(child.pid(), RLIMIT_CPU, &harmless, nullptr) == 0);
  const Child other;
  tell("move_child", ::setpgid(other.pid(), other.pid()) == 0);
}

// In a child: it is no leader yet, and whatever it becomes ends with it.
void try_to_leave() {
  const pid_t child = ::fork();
  if (child == 0) {
    tell("become_subreaper", ::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    tell("die_by_sigkill", ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    tell("die_by_sigterm", ::prctl(PR_SET_PDEATHSIG, SIGTERM) == 0);
    tell("outlive_parent", ::prctl(PR_SET_PDEATHSIG, 0) == 0);
    tell("own_group", ::setpgid(0, 0) == 0);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  const pid_t leader = ::fork();
  if (leader == 0) {
    tell("own_session", ::setsid() > 0);
    ::_exit(0);
  }
  ::waitpid(leader, nullptr, 0);
}

// Two seconds of CPU time.
void try_endless_template(const std::map<std::string, std::string>& places) {
  if (places.count("endless") == 0) return;
  berth::worker::TemplateRenderer::Setup setup;
  setup.program = berth::worker::template_program_beside_self();
  setup.chat_template.source =
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
  setup.limits.wall = std::chrono::seconds(100);
  berth::worker::TemplateRenderer renderer(std::move(setup));
  const auto prompt = renderer.render({R"([{"role":"user","content":"x"}])", {}, {}, true});
  const bool bounded =
      !prompt && prompt.error().message.find("computes for too long") != std::string::npos;
  errno = ETIME;
  tell("endless_template_is_bounded", bounded);
}

// The model's lines, read by what is already in the sandbox: so reading works.
tl::expected<std::unique_ptr<berth::worker::Engine>, berth::worker::LoadFailure> trespass(
    const berth::worker::EngineSettings& settings, berth::worker::LoadObserver& /*observer*/) {
  std::ifstream file(settings.model_path);
  std::map<std::string, std::string> places;
  for (std::string name, path; file >> name >> path;) places[name] = path;
  try_files(places);
  try_programs(places);
  try_sockets(places);
  try_calls();
  try_limits(places);
  try_to_leave();
  try_endless_template(places);
  tell("end", true);
  return tl::unexpected(berth::worker::LoadFailure{"permanent", "it was only here to look around"});
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
  auto options = berth::worker::parse_options(arguments.subspan(1));
  if (!options) {
    return berth::worker::complain(options.error().message, berth::worker::kExitUsage);
  }
  berth::worker::limit_own_process();
  return berth::worker::serve(std::move(*options), &trespass);
}
