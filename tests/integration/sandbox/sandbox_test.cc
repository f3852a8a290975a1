#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "common/fd.h"
#include "tests/integration/worker/worker_process.h"
#include "worker/sandbox/sandbox.h"

namespace berth::worker {
namespace {

using testing::HasSubstr;

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

UniqueFd listen_at(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(fd.get(), 4), 0);
  return fd;
}

// One of this process, which is the worker's supervisor here.
class OtherThread {
 public:
  OtherThread() {
    std::promise<pid_t> number;
    auto known = number.get_future();
    thread_ = std::thread([this, &number] {
      number.set_value(static_cast<pid_t>(::syscall(SYS_gettid)));
      end_.get_future().wait();
    });
    number_ = known.get();
  }
  OtherThread(const OtherThread&) = delete;
  OtherThread& operator=(const OtherThread&) = delete;
  ~OtherThread() {
    end_.set_value();
    thread_.join();
  }
  [[nodiscard]] pid_t number() const { return number_; }

 private:
  std::promise<void> end_;
  std::thread thread_;
  pid_t number_ = -1;
};

// What a worker that tries everything could do: by the attempt's name "ok", or an errno's name.
class Sandbox : public testing::Test {
 protected:
  using Outcomes = std::map<std::string, std::string>;

  void SetUp() override {
    std::string pattern = "/tmp/berth-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directories(directory_ + "/models");
    std::filesystem::create_directories(directory_ + "/run");
    std::filesystem::permissions(directory_ + "/run", std::filesystem::perms::owner_all);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  Outcomes attempt(const std::vector<std::string>& arguments = {},
                   const std::vector<std::string>& wrapper = {}) {
    const auto model = directory_ + "/models/m-00001-of-00002.gguf";
    const auto shard = directory_ + "/models/m-00002-of-00002.gguf";
    const auto other = directory_ + "/models/other.gguf";
    const auto listener = directory_ + "/listener";
    const auto device = directory_ + "/device";
    write_file(model, "model " + model + "\nshard " + shard + "\nother " + other + "\nfolder " +
                          directory_ + "/models\nlistener " + listener + "\nsocket_folder " +
                          directory_ + "/run\ndevice /dev/full\nthread " +
                          std::to_string(thread_.number()) + "\n" + more_);
    write_file(shard, "s");
    write_file(other, "#!/bin/sh\n");
    std::filesystem::permissions(other, std::filesystem::perms::owner_all);
    const auto listening = listen_at(listener);
    WorkerProcess worker({.model = model,
                          .arguments = arguments,
                          .socket = directory_ + "/run/s",
                          .wrapper = wrapper});
    const auto event = worker.wait_loaded();
    EXPECT_TRUE(event && event->has_load_failed()) << worker.log();
    worker.wait_exit();
    EXPECT_FALSE(std::filesystem::exists(worker.socket()));
    log_ = worker.log();
    Outcomes outcomes;
    std::istringstream lines(log_);
    for (std::string name, outcome; lines >> name >> outcome;) outcomes[name] = outcome;
    EXPECT_EQ(outcomes["end"], "ok") << log_;
    return outcomes;
  }

  void expect(Outcomes& outcomes, const std::string& outcome,
              const std::vector<std::string>& names) const {
    for (const auto& name : names) EXPECT_EQ(outcomes[name], outcome) << name << "\n" << log_;
  }

  OtherThread thread_;
  std::string directory_;
  std::string more_;  // lines for the trespasser
  std::string log_;
  SandboxReport kernel_ = probe_sandbox();
};

TEST_F(Sandbox, L26_NoFileButItsOwn) {
  if (!kernel_.has(SandboxPart::kFiles)) GTEST_SKIP() << "this kernel has no Landlock";
  auto outcomes = attempt();
  expect(outcomes, "ok", {"read_model", "read_shard", "read_own_proc", "open_null"});
  expect(outcomes, "EACCES", {"write_model",    "remove_model",       "read_other_model",
                              "write_other",    "remove_other",       "list_folder",
                              "make_file",      "make_beside_socket", "make_folder",
                              "symlink",        "read_passwords",     "read_users",
                              "read_programs",  "write_tmp",          "write_shared_memory",
                              "write_own_proc", "read_parent_memory", "read_parent_status",
                              "open_terminal",  "open_kernel_log",    "open_device"});
  EXPECT_NE(outcomes["link"], "ok");
  EXPECT_NE(outcomes["move"], "ok");
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/models/other.gguf"));
}

TEST_F(Sandbox, L26_NoProgramButTheTemplateHelper) {
  if (!kernel_.has(SandboxPart::kFiles)) GTEST_SKIP() << "this kernel has no Landlock";
  auto outcomes = attempt();
  expect(outcomes, "EACCES", {"execute_shell", "execute_model"});
  expect(outcomes, "ok", {"execute_template", "start_template"});
}

TEST_F(Sandbox, L26_NoCoreIsDumped) {
  EXPECT_EQ(attempt()["dump_core"], "ECHILD");
}

TEST_F(Sandbox, L26_NoSocketButUnixOnes) {
  if (!kernel_.has(SandboxPart::kSystemCalls)) GTEST_SKIP() << "this kernel has no seccomp";
  auto outcomes = attempt();
  expect(outcomes, "EAFNOSUPPORT",
         {"socket_tcp", "socket_udp", "socket_ip6", "socket_netlink", "socket_packet",
          "socket_vsock", "socket_alg"});
  expect(outcomes, "ok", {"socket_unix", "socketpair"});
  // Other processes' sockets, berthd's among them.
  expect(outcomes, "EPERM", {"connect_unix", "socket_unix_datagram"});
}

TEST_F(Sandbox, L26_NoSystemCallThatLeadsOut) {
  if (!kernel_.has(SandboxPart::kSystemCalls)) GTEST_SKIP() << "this kernel has no seccomp";
  auto outcomes = attempt();
  expect(outcomes, "EPERM",
         {"ptrace_parent",
          "signal_parent",
          "signal_other",
          "pidfd_thread",
          "own_descriptor",
          "choose_signal",
          "signal_all",
          "signal_thread_of_parent",
          "pidfd_parent",
          "limit_parent",
          "read_memory_of_parent",
          "mount",
          "unshare_users",
          "unshare_network",
          "clone_users",
          "chroot",
          "bpf",
          "perf",
          "userfaultfd",
          "keyctl",
          "setuid",
          "reboot",
          "kexec",
          "module",
          "truncate_model",
          "empty_model",
          "empty_model_by_mode_3",
          "chmod_model"});
  expect(outcomes, "ENOSYS", {"clone3", "io_uring"});
}

TEST_F(Sandbox, L26_NoLimitsOfOtherProcesses) {
  if (!kernel_.has(SandboxPart::kSystemCalls)) GTEST_SKIP() << "this kernel has no seccomp";
  auto outcomes = attempt();
  expect(outcomes, "EPERM",
         {"limit_parent_cpu", "limit_thread_of_parent", "limit_child", "set_limit_of_child",
          "limit_self_by_number"});
  expect(outcomes, "ok", {"limit_self"});
}

TEST_F(Sandbox, L26_TheTemplateHelperLimitsItself) {
  more_ = "endless yes\n";
  EXPECT_EQ(attempt()["endless_template_is_bounded"], "ok") << log_;
}

// There getppid() is 0, which is also how a process names itself.
TEST_F(Sandbox, L26_OwnLimitsWhereTheSupervisorIsInAnotherPidNamespace) {
  std::vector<std::string> unshare = {"/usr/bin/unshare", "--pid", "--fork", "--kill-child"};
  if (::geteuid() != 0) unshare.insert(unshare.end(), {"--user", "--map-root-user"});
  std::string probe;
  for (const auto& word : unshare) probe += word + " ";
  if (std::system((probe + "true").c_str()) != 0) GTEST_SKIP() << "no namespaces here";
  more_ = "endless yes\n";
  auto outcomes = attempt({}, unshare);
  expect(outcomes, "ok", {"limit_self", "start_template", "endless_template_is_bounded"});
}

TEST_F(Sandbox, L4_NoWayOutOfItsProcessGroup) {
  if (!kernel_.has(SandboxPart::kSystemCalls)) GTEST_SKIP() << "this kernel has no seccomp";
  auto outcomes = attempt();
  expect(outcomes, "EPERM", {"own_session", "own_group", "move_child"});
}

TEST_F(Sandbox, L4_NoDeathSignalButSigkillAndNoOrphansOfItsOwn) {
  if (!kernel_.has(SandboxPart::kSystemCalls)) GTEST_SKIP() << "this kernel has no seccomp";
  auto outcomes = attempt();
  expect(outcomes, "EPERM", {"become_subreaper", "die_by_sigterm", "outlive_parent"});
  expect(outcomes, "ok", {"die_by_sigkill"});
}

TEST_F(Sandbox, L26_DeviceNodesOnlyWithADevice) {
  if (!kernel_.has(SandboxPart::kFiles)) GTEST_SKIP() << "this kernel has no Landlock";
  const std::vector<std::string> home = {"/usr/bin/env", "HOME=" + directory_,
                                         "XDG_CACHE_HOME=" + directory_ + "/cache"};
  auto outcomes = attempt({"--device", "Vulkan0"}, home);
  // The nodes are those of graphics processors; no more becomes open to it.
  expect(outcomes, "EACCES",
         {"open_device", "read_passwords", "read_other_model", "execute_shell", "write_tmp",
          "make_file", "open_kernel_log"});
  expect(outcomes, "EAFNOSUPPORT", {"socket_tcp"});
  // Compiled shaders are kept where Mesa looks for them.
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/cache/mesa_shader_cache"));
}

TEST_F(Sandbox, L26_OffMeansOff) {
  auto outcomes = attempt({"--sandbox", "off"});
  expect(outcomes, "ok", {"read_other_model", "make_file", "execute_shell", "socket_udp"});
  // So it is the sandbox that refuses these.
  expect(outcomes, "ok",
         {"limit_child", "limit_thread_of_parent", "own_session", "own_group", "move_child",
          "become_subreaper", "die_by_sigterm", "outlive_parent"});
  EXPECT_EQ(outcomes["dump_core"], "ECHILD");
}

TEST_F(Sandbox, L26_SaysInItsLogWhatIsMissing) {
  attempt();
  if (kernel_.complete()) {
    EXPECT_THAT(log_, testing::Not(HasSubstr("parts of the sandbox")));
  } else {
    EXPECT_THAT(log_, HasSubstr("parts of the sandbox are not there: " + kernel_.missing()));
  }
}

}  // namespace
}  // namespace berth::worker
