#include "supervisor/process/worker_cgroup.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "supervisor/process/own_cgroup.h"
#include "supervisor/process/process_launcher.h"
#include "tests/unit/process/loop.h"
#include "tests/unit/process/temp_dir.h"

namespace berth::process {
namespace {

using testing::append;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kGenerous;
using testing::poll_until;
using testing::Recorder;
using testing::run_until;
using testing::shell;
using testing::slurp;
using testing::TempDir;

constexpr const char* kInstance = "01890a5d-ac96-774b-bcce-b302099a8057";
constexpr const char* kOther = "01890a5d-ac96-774b-bcce-b302099a8058";

TEST(CgroupText, L9_MemoryEventsCountOomKills) {
  EXPECT_EQ(parse_oom_kills("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n"), 2U);
  EXPECT_EQ(parse_oom_kills("oom_kill 0\n"), 0U);
  for (const char* const text : {"", "oom 3\n", "oom_group_kill 1\n", "oom_kill\n", "oom_kill \n",
                                 "oom_kill -1\n", "oom_kill 1x\n", "xoom_kill 1\n"}) {
    EXPECT_EQ(parse_oom_kills(text), std::nullopt) << text;
  }
}

TEST(CgroupText, L2_EventsSayWhetherAnythingLives) {
  EXPECT_TRUE(parse_populated("populated 1\nfrozen 0\n"));
  EXPECT_FALSE(parse_populated("populated 0\nfrozen 1\n"));
  EXPECT_FALSE(parse_populated(""));
}

// A plain directory in the place of a cgroup: what the kernel says is put there by the test.
class PlainDirectoryTest : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<ChildProcess> launch(const std::string& instance) {
    LaunchSpec spec = shell("read line; kill -KILL $$");
    spec.cgroup = instance;
    auto child = launcher_.launch(std::move(spec), recorder_);
    EXPECT_TRUE(child) << child.error().message;
    return child ? *std::move(child) : nullptr;
  }
  void end(const std::unique_ptr<ChildProcess>& child) {
    child->close_stdin();
    ASSERT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
  }
  [[nodiscard]] std::string directory(const std::string& instance) const {
    return dir_.file(instance);
  }

  TempDir dir_;
  boost::asio::io_context io_{1};
  std::unique_ptr<WorkerCgroups> cgroups_ = *WorkerCgroups::open(dir_.path());
  std::vector<std::string> problems_;
  RealLauncher launcher_{
      io_,
      {.exec_wait = kGenerous,
       .use_clone3 = GetParam(),
       .cgroups = cgroups_.get(),
       .on_cgroup_problem = [this](const std::string& problem) { problems_.push_back(problem); }}};
  Recorder recorder_;
};
INSTANTIATE_TEST_SUITE_P(Clone, PlainDirectoryTest, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "Clone3" : "Fork"; });

TEST_P(PlainDirectoryTest, L9_ACountedKillIsTheProof) {
  const auto child = launch(kInstance);
  append(directory(kInstance) + "/memory.events", "oom 1\noom_kill 1\n");
  end(child);
  EXPECT_EQ(core::to_string(*recorder_.exit), "SIGKILL");
  EXPECT_TRUE(launcher_.counted_oom_kill(child->pid()));
}

// A file's reads, one event each time that it is closed.
class Reads {
 public:
  explicit Reads(const std::string& file)
      : events_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
        watch_(::inotify_add_watch(events_.get(), file.c_str(), IN_CLOSE_NOWRITE)) {}
  // Those since the last call.
  int count() {
    int count = 0;
    alignas(inotify_event) std::array<char, 4096> buffer{};
    for (ssize_t got = 0; (got = ::read(events_.get(), buffer.data(), buffer.size())) > 0;) {
      for (ssize_t at = 0; at < got; at += static_cast<ssize_t>(sizeof(inotify_event))) ++count;
    }
    return count;
  }
  [[nodiscard]] bool watches() const { return watch_ >= 0; }

 private:
  UniqueFd events_;
  int watch_;
};

// As when berth-template was killed on the first day of a worker that lives for many.
TEST_P(PlainDirectoryTest, L9_AnOldCountedKillIsNoProof) {
  RealLauncher launcher(io_, {.exec_wait = kGenerous,
                              .use_clone3 = GetParam(),
                              .oom_sample = std::chrono::milliseconds(1),
                              .cgroups = cgroups_.get()});
  LaunchSpec spec = shell("read line; kill -ABRT $$");
  spec.cgroup = kInstance;
  const auto child = launcher.launch(std::move(spec), recorder_);
  ASSERT_TRUE(child) << child.error().message;
  const std::string events = directory(kInstance) + "/memory.events";
  append(events, "oom 1\noom_kill 1\n");
  Reads reads(events);
  ASSERT_TRUE(reads.watches());
  int seen = 0;
  constexpr int kEnough = 4;
  ASSERT_TRUE(run_until(io_, [&] { return (seen += reads.count()) >= kEnough; }));
  end(*child);
  EXPECT_FALSE(launcher.counted_oom_kill((*child)->pid()));
}

TEST_P(PlainDirectoryTest, L9_ASigkillAloneIsNone) {
  for (const char* const text : {"", "oom 1\noom_kill 0\n"}) {
    std::filesystem::remove_all(directory(kInstance));
    recorder_.exit.reset();
    const auto child = launch(kInstance);
    if (*text != '\0') append(directory(kInstance) + "/memory.events", text);
    end(child);
    EXPECT_EQ(core::to_string(*recorder_.exit), "SIGKILL");
    EXPECT_FALSE(launcher_.counted_oom_kill(child->pid()));
  }
}

TEST_P(PlainDirectoryTest, L3_ALaunchGoesOnWithoutACgroupAndOneWordOfIt) {
  for (const char* const instance : {kInstance, kOther}) {
    recorder_.exit.reset();
    end(launch(instance));
  }
  EXPECT_EQ(problems_.size(), 1U);
  EXPECT_FALSE(std::filesystem::exists(directory(kInstance)));
}

TEST_P(PlainDirectoryTest, L3_ALaunchGoesOnWhereNoCgroupCanBeMade) {
  append(directory(kInstance), "in the way");
  end(launch(kInstance));
  recorder_.exit.reset();
  end(launch("../escape"));
  EXPECT_EQ(problems_.size(), 1U);
  EXPECT_THAT(problems_.at(0), HasSubstr("File exists"));
  EXPECT_FALSE(std::filesystem::exists(dir_.path() + "/../escape"));
}

TEST_P(PlainDirectoryTest, L3_WhatCannotBeRemovedIsSweptLater) {
  {
    const auto made = cgroups_->make(kInstance);
    ASSERT_TRUE(made);
    append(directory(kInstance) + "/busy", "");
  }
  EXPECT_TRUE(std::filesystem::exists(directory(kInstance)));
  cgroups_->sweep();
  EXPECT_TRUE(std::filesystem::exists(directory(kInstance)));
  std::filesystem::remove(directory(kInstance) + "/busy");
  ASSERT_TRUE(cgroups_->make(kOther));
  EXPECT_FALSE(std::filesystem::exists(directory(kInstance)));
  EXPECT_FALSE(std::filesystem::exists(directory(kOther)));
}

// A cgroup of the test's own, in that of this process, where the machine lets it have one.
class CgroupTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const auto own = cgroup_directory(slurp("/proc/self/cgroup"), slurp("/proc/self/mountinfo"));
    if (!own) GTEST_SKIP() << own.error().message;
    std::string name = *own + "/berth-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      GTEST_SKIP() << "no cgroup can be made in " << *own << ": " << std::strerror(errno);
    }
    home_ = *own;
    root_ = name;
    // To move a process takes the right to do it in both.
    if (::access((home_ + "/cgroup.procs").c_str(), W_OK) != 0) {
      GTEST_SKIP() << "processes cannot be moved out of " << home_;
    }
    cgroups_ = *WorkerCgroups::open(root_);
    if (::access((root_ + "/cgroup.kill").c_str(), W_OK) != 0) {
      GTEST_SKIP() << "this kernel has no cgroup.kill";
    }
    launcher_.emplace(io_, LauncherOptions{.exec_wait = kGenerous,
                                           .use_clone3 = GetParam(),
                                           .cgroups = cgroups_.get(),
                                           .on_cgroup_problem = [this](const std::string& text) {
                                             problem_ = text;
                                           }});
  }
  void TearDown() override {
    if (root_.empty()) return;
    append(home_ + "/cgroup.procs", std::to_string(::getpid()));
    {
      std::ofstream kill(root_ + "/cgroup.kill");
      kill << "1" << std::flush;
    }
    // One that left its cgroup for a test's sake is not in this one.
    for (const UniqueFd& pidfd : pidfds_) {
      ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
    }
    EXPECT_TRUE(poll_until([this] {
      if (parse_populated(slurp(root_ + "/cgroup.events"))) return false;
      remove_cgroups();
      return !std::filesystem::exists(root_);
    })) << root_;
  }
  // Deepest first; their files are the kernel's.
  void remove_cgroups() const {
    std::vector<std::string> all = {root_};
    std::error_code gone;
    for (std::filesystem::recursive_directory_iterator entry(root_, gone), end;
         !gone && entry != end; entry.increment(gone)) {
      if (entry->is_directory(gone)) all.push_back(entry->path().string());
    }
    std::for_each(all.rbegin(), all.rend(), [](const std::string& one) { ::rmdir(one.c_str()); });
  }

  // Starts `script`, which writes pids and then "up".
  void start(const std::string& script, const std::string& shim = {}) {
    LaunchSpec spec = shell(script);
    spec.cgroup = kInstance;
    spec.shim = shim;
    const std::string output = dir_.file("out");
    spec.output.reset(::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR));
    auto child = launcher_->launch(std::move(spec), recorder_);
    ASSERT_TRUE(child) << child.error().message;
    child_ = *std::move(child);
    ASSERT_TRUE(poll_until([&] { return slurp(output).find("up\n") != std::string::npos; }));
    std::istringstream text(slurp(output));
    for (pid_t pid = 0; text >> pid;) {
      pidfds_.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
      ASSERT_TRUE(pidfds_.back()) << pid;
    }
  }
  [[nodiscard]] bool all_ended() const {
    return std::ranges::all_of(pidfds_, [](const UniqueFd& pidfd) {
      pollfd wait{pidfd.get(), POLLIN, 0};
      return ::poll(&wait, 1, 0) == 1;
    });
  }
  bool exited() {
    return run_until(io_, [this] { return recorder_.exit.has_value(); });
  }
  [[nodiscard]] std::string cgroup() const { return root_ + "/" + kInstance; }

  TempDir dir_;
  boost::asio::io_context io_{1};
  std::string home_;
  std::string root_;
  std::string problem_;
  std::unique_ptr<WorkerCgroups> cgroups_;
  std::optional<RealLauncher> launcher_;
  Recorder recorder_;
  std::unique_ptr<ChildProcess> child_;
  std::vector<UniqueFd> pidfds_;
};
INSTANTIATE_TEST_SUITE_P(Clone, CgroupTest, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "Clone3" : "Fork"; });

// Descendants in sessions of their own whose parents have ended: one deaf, one stopped.
constexpr const char* kScattered =
    "(setsid sh -c 'trap \"\" TERM HUP; echo $$; exec sleep 600' &)\n"
    "(setsid sh -c 'echo $$; kill -STOP $$; sleep 600' &)\n"
    "while [ $(wc -l <\"$OUT\") -lt 2 ]; do sleep 0.01; done; echo $$; echo up; exec sleep 600";
std::string scattered(const std::string& output) {
  return "OUT=" + output + "\n" + kScattered;
}

TEST_P(CgroupTest, L3_TheKillStepGetsWhatLeftTheGroup) {
  start(scattered(dir_.file("out")));
  ASSERT_EQ(pidfds_.size(), 3U);
  EXPECT_TRUE(parse_populated(slurp(cgroup() + "/cgroup.events")));
  child_->signal_group(SIGKILL);
  ASSERT_TRUE(exited());
  EXPECT_TRUE(all_ended());
  EXPECT_EQ(core::to_string(*recorder_.exit), "SIGKILL");
  EXPECT_FALSE(std::filesystem::exists(cgroup()));
  EXPECT_FALSE(launcher_->counted_oom_kill(child_->pid()));
  EXPECT_EQ(problem_, "");
}

TEST_P(CgroupTest, L3_TheKillStepGetsACommandsTreeWithItsShim) {
  start(scattered(dir_.file("out")), BERTH_SHIM);
  // A stopped shim could do nothing itself.
  ASSERT_EQ(::kill(child_->pid(), SIGSTOP), 0);
  child_->signal_group(SIGKILL);
  ASSERT_TRUE(exited());
  EXPECT_TRUE(all_ended());
  EXPECT_FALSE(std::filesystem::exists(cgroup()));
}

TEST_P(CgroupTest, L3_NoForkEscapesTheKill) {
  start(
      "for i in 1 2 3; do (setsid sh -c 'trap \"\" TERM HUP; "
      "while :; do (sleep 600 &); (setsid sleep 600 &); sleep 0.01; done' &); done; "
      "echo $$; echo up; exec sleep 600");
  child_->signal_group(SIGKILL);
  ASSERT_TRUE(exited());
  EXPECT_FALSE(std::filesystem::exists(cgroup()));  // can be removed only when empty
}

TEST_P(CgroupTest, L2_AnExitIsToldWhenNothingInTheCgroupLives) {
  start(scattered(dir_.file("out")));
  // Only the worker itself, as the kernel would.
  ASSERT_EQ(::kill(child_->pid(), SIGKILL), 0);
  recorder_.after_exit = [this] { EXPECT_TRUE(all_ended()); };
  ASSERT_TRUE(exited());
  EXPECT_FALSE(std::filesystem::exists(cgroup()));
}

TEST_P(CgroupTest, L3_CgroupsThatAWorkerMadeGoWithIt) {
  start("mkdir -p " + root_ + "/" + kInstance + "/a/b; (setsid sh -c 'echo 0 >" + root_ + "/" +
        kInstance + "/a/b/cgroup.procs; echo $$; echo up; exec sleep 600' &); exec sleep 600");
  EXPECT_THAT(slurp(cgroup() + "/a/b/cgroup.procs"), ::testing::Not(IsEmpty()));
  child_->signal_group(SIGKILL);
  ASSERT_TRUE(exited());
  EXPECT_TRUE(all_ended());
  EXPECT_FALSE(std::filesystem::exists(cgroup()));
}

TEST_P(CgroupTest, AFailedLaunchLeavesNoCgroup) {
  LaunchSpec spec = shell("true");
  spec.program = "/nonexistent";
  spec.cgroup = kInstance;
  EXPECT_FALSE(launcher_->launch(std::move(spec), recorder_));
  EXPECT_FALSE(std::filesystem::exists(cgroup()));
}

TEST_P(CgroupTest, L4_WhatAnEarlierRunLeftIsKilledAndNothingElse) {
  start(scattered(dir_.file("out")));
  ASSERT_EQ(::mkdir((root_ + "/" + kOther).c_str(), S_IRWXU), 0);
  ASSERT_EQ(::mkdir((root_ + "/.control").c_str(), S_IRWXU), 0);
  // The next daemon knows nothing of the launcher and of its child.
  const auto next = WorkerCgroups::open(root_);
  ASSERT_TRUE(next);
  const auto found = (*next)->clear_leftovers(kGenerous);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].instance, kInstance);
  EXPECT_EQ(found[0].end, LeftoverEnd::kKilled);
  EXPECT_GT(found[0].pid, 1);
  EXPECT_TRUE(all_ended());
  EXPECT_FALSE(std::filesystem::exists(cgroup()));
  EXPECT_FALSE(std::filesystem::exists(root_ + "/" + kOther));
  EXPECT_TRUE(std::filesystem::exists(root_ + "/.control"));  // systemd's, for ExecReload=
  EXPECT_THAT((*next)->clear_leftovers(kGenerous), IsEmpty());
  ASSERT_TRUE(exited());
}

TEST_P(CgroupTest, L3_BerthdMovesIntoACgroupOfItsOwn) {
  append(root_ + "/cgroup.procs", std::to_string(::getpid()));
  ASSERT_EQ(slurp(root_ + "/cgroup.procs"), std::to_string(::getpid()) + "\n");
  const auto taken = WorkerCgroups::take_over(root_);
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(slurp(root_ + "/cgroup.procs"), "");
  EXPECT_EQ(slurp(root_ + "/supervisor/cgroup.procs"), std::to_string(::getpid()) + "\n");
  EXPECT_THAT((*taken)->clear_leftovers(kGenerous), IsEmpty());
  // From there children still start in theirs.
  start("sed -n s/^0:://p /proc/self/cgroup; echo up; read line");
  EXPECT_THAT(slurp(dir_.file("out")), HasSubstr(std::string("/") + kInstance + "\n"));
  child_->signal_group(SIGKILL);
  ASSERT_TRUE(exited());
}

TEST(WorkerCgroups, L3_WhatIsNoDirectoryIsRefused) {
  const auto taken = WorkerCgroups::take_over("/nonexistent");
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().message, "open /nonexistent: No such file or directory");
  // Not a cgroup: nothing is left behind in it.
  TempDir dir;
  EXPECT_FALSE(WorkerCgroups::take_over(dir.path()));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

}  // namespace
}  // namespace berth::process
