// Hostile templates, and what else may befall berth-template. After each the next request works:
// the worker lives, and has one new process at most.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "common/fd.h"
#include "worker/template/template_renderer.h"

namespace berth::worker {
namespace {

using testing::HasSubstr;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Does what the message says, so that one template can do harm and good.
constexpr const char* kSource =
    "{% macro deep(n) %}{{ deep(n + 1) }}{% endmacro %}"
    "{% set wish = messages[0].content %}"
    "{% if wish == 'loop' %}{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}"
    "{% endfor %}"
    "{% elif wish == 'recursion' %}{{ deep(0) }}"
    "{% elif wish == 'output' %}{% for a in range(40) %}{{ 'x' * 1000000 }}{% endfor %}"
    "{% elif wish == 'memory' %}{% set ns = namespace(all=['x' * 1000000]) %}"
    "{% for a in range(100) %}{% set ns.all = ns.all + ns.all %}{% endfor %}"
    "{% endif %}{{ wish }}";

class TemplateLimitsTest : public testing::Test {
 protected:
  // Time enough to compute for 2 s on a machine that has much else to do.
  explicit TemplateLimitsTest(TemplateLimits limits = {.wall = std::chrono::seconds(100)})
      : renderer_(setup(limits)) {}

  static TemplateRenderer::Setup setup(TemplateLimits limits) {
    TemplateRenderer::Setup made;
    made.program = BERTH_TEMPLATE;
    made.chat_template.source = kSource;
    made.limits = limits;
    return made;
  }

  Result<RenderedPrompt> ask(const std::string& wish,
                             const TemplateProcess::Abandoned& abandoned = {}) {
    const auto messages = R"-([{"role":"user","content":")-" + wish + "\"}]";
    return renderer_.render({messages, {}, {}, true}, abandoned);
  }

  // The message of a failure that leaves the renderer usable.
  std::string failure(const std::string& wish) {
    const auto parts = ask(wish);
    EXPECT_FALSE(parts.has_value());
    if (parts) return "";
    EXPECT_EQ(parts.error().reason, Reason::kTemplateFailed);
    EXPECT_EQ(reason_info(parts.error().reason).http_status, 400);
    works();
    return parts.error().message;
  }

  void works() {
    const auto parts = ask("hello");
    ASSERT_TRUE(parts.has_value()) << parts.error().message;
    EXPECT_EQ(parts->parts.front().text, "hello");
  }

  // Of the process that runs. Never one of the numbers that mean many processes.
  pid_t pid() const {
    const pid_t pid = renderer_.pid();
    EXPECT_GT(pid, 1);
    if (pid <= 1) std::abort();
    return pid;
  }
  static void send(pid_t pid, int signal) {
    if (pid <= 1) std::abort();
    EXPECT_EQ(::kill(pid, signal), 0);
  }

  // Whether the process of that number is one that runs (not a zombie).
  static bool runs(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string number;
    std::string name;
    std::string state;
    return static_cast<bool>(stat >> number >> name >> state) && state != "Z" && state != "X";
  }

  TemplateRenderer renderer_;
};

TEST_F(TemplateLimitsTest, L26_AnEndlessLoopEndsAfterItsCpuTime) {
  EXPECT_THAT(failure("loop"), HasSubstr("computes for too long: the 2 s"));
}

TEST_F(TemplateLimitsTest, L26_RecursionFillsItsStackOnly) {
  if (kSanitized) GTEST_SKIP() << "sanitizers have stacks of their own";
  EXPECT_THAT(failure("recursion"), HasSubstr("calls itself too deeply"));
}

TEST_F(TemplateLimitsTest, L26_HugeOutputIsBounded) {
  EXPECT_THAT(failure("output"), HasSubstr("more than 16 MiB"));
}

TEST_F(TemplateLimitsTest, L26_AMemoryBombIsBounded) {
  if (kSanitized) GTEST_SKIP() << "sanitizers reserve more memory than the limit";
  EXPECT_THAT(failure("memory"), HasSubstr("512 MiB of memory"));
}

TEST_F(TemplateLimitsTest, L26_ACrashIsA400) {
  works();
  std::atomic<bool> asked{false};
  const pid_t pid = this->pid();
  // In the middle of a request: it is sent, and the template computes.
  const auto crash = [&] {
    asked = true;
    send(pid, SIGABRT);
    return false;
  };
  const auto parts = ask("loop", crash);
  ASSERT_FALSE(parts.has_value());
  EXPECT_TRUE(asked);
  EXPECT_EQ(parts.error().reason, Reason::kTemplateFailed);
  EXPECT_THAT(parts.error().message, HasSubstr("crashed: its program was ended by SIGABRT"));
  works();
}

TEST_F(TemplateLimitsTest, L26_AKillBetweenRequestsIsNotNoticed) {
  works();
  const pid_t pid = this->pid();
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  send(pid, SIGKILL);
  pollfd ended{pidfd.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&ended, 1, 60000), 1);
  works();
  EXPECT_NE(renderer_.pid(), pid);
}

// The next chat may be hours away.
TEST_F(TemplateLimitsTest, L4_AKillBetweenRequestsLeavesNoZombie) {
  works();
  const pid_t pid = this->pid();
  send(pid, SIGKILL);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::filesystem::exists("/proc/" + std::to_string(pid)) &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(std::filesystem::exists("/proc/" + std::to_string(pid)));
  works();
}

TEST_F(TemplateLimitsTest, L26_AKillWithinARequestIsA400) {
  works();
  const pid_t pid = this->pid();
  const auto parts = ask("loop", [pid] {
    send(pid, SIGKILL);
    return false;
  });
  ASSERT_FALSE(parts.has_value());
  EXPECT_THAT(parts.error().message, HasSubstr("SIGKILL"));
  works();
}

TEST_F(TemplateLimitsTest, L26_NobodyWaitsForWhatIsAbandoned) {
  works();
  const pid_t pid = this->pid();
  const auto parts = ask("loop", [] { return true; });
  ASSERT_FALSE(parts.has_value());
  EXPECT_EQ(parts.error().reason, Reason::kDeadline);
  EXPECT_FALSE(runs(pid));
  works();
}

TEST_F(TemplateLimitsTest, L26_HonestWorkIsNeverTooMuch) {
  works();
  // One process after the other uses its share of CPU time, together more than one may.
  constexpr int kMost = 10;
  pid_t pid = this->pid();
  int processes = 1;
  for (int i = 0; i < 1000000 && processes < kMost; ++i) {
    ASSERT_NO_FATAL_FAILURE(works());
    if (renderer_.pid() == pid) continue;
    ++processes;
    pid = renderer_.pid();
  }
  EXPECT_EQ(processes, kMost);
}

class StoppedTemplateTest : public TemplateLimitsTest {
 protected:
  StoppedTemplateTest() : TemplateLimitsTest({.wall = std::chrono::seconds(5)}) {}
};

TEST_F(StoppedTemplateTest, L26_AStoppedProcessIsEndedInTime) {
  works();
  send(pid(), SIGSTOP);
  EXPECT_THAT(failure("hello"), HasSubstr("not done within 5000 ms"));
}

// A program in the place of berth-template that always has one more byte to say.
class DrippingTemplateTest : public testing::Test {
 protected:
  DrippingTemplateTest() {
    std::string pattern = "/tmp/berth-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    std::ofstream(program()) << "#!/bin/sh\n"
                                "printf '\\000\\000\\000\\002' >&0\n"
                                "while printf x >&0; do :; done\n";
    std::filesystem::permissions(program(), std::filesystem::perms::owner_all);
  }
  ~DrippingTemplateTest() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string program() const { return directory_ + "/dripping"; }
  Result<RenderedPrompt> ask(std::chrono::milliseconds wall,
                             const TemplateProcess::Abandoned& abandoned) {
    TemplateRenderer::Setup made;
    made.program = program();
    made.limits = {.wall = wall};
    TemplateRenderer renderer(std::move(made));
    return renderer.render({R"([{"role":"user","content":"x"}])", {}, {}, true}, abandoned);
  }

 private:
  std::string directory_;
};

TEST_F(DrippingTemplateTest, L26_IsEndedInTime) {
  const auto prompt = ask(std::chrono::milliseconds(500), {});
  ASSERT_FALSE(prompt.has_value());
  EXPECT_THAT(prompt.error().message, HasSubstr("not done within 500 ms"));
}

TEST_F(DrippingTemplateTest, L26_IsEndedOnceNobodyWaits) {
  int asked = 0;
  const auto prompt = ask(std::chrono::seconds(100), [&] { return ++asked > 10; });
  ASSERT_FALSE(prompt.has_value());
  EXPECT_EQ(prompt.error().reason, Reason::kDeadline);
}

TEST_F(TemplateLimitsTest, L26_ItDiesWithTheThreadThatStartedIt) {
  pid_t pid = -1;
  UniqueFd pidfd;
  std::unique_ptr<TemplateRenderer> renderer;
  std::thread([&] {
    renderer = std::make_unique<TemplateRenderer>(setup({}));
    EXPECT_TRUE(renderer->render({R"([{"role":"user","content":"x"}])", {}, {}, true}).has_value());
    pid = renderer->pid();
    pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  }).join();
  pollfd ended{pidfd.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 60000), 1);
}

TEST_F(TemplateLimitsTest, L26_ItIsShutIn) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need more";
  works();
  const auto limit_of = [this](auto resource) {
    rlimit limit{};
    EXPECT_EQ(::prlimit(renderer_.pid(), resource, nullptr, &limit), 0);
    return limit.rlim_cur;
  };
  EXPECT_EQ(limit_of(RLIMIT_CPU), 2U);
  EXPECT_EQ(limit_of(RLIMIT_AS), rlim_t{512} << 20U);
  EXPECT_EQ(limit_of(RLIMIT_STACK), rlim_t{64} << 20U);
  EXPECT_EQ(limit_of(RLIMIT_CORE), 0U);
  EXPECT_EQ(limit_of(RLIMIT_FSIZE), 0U);
  EXPECT_EQ(limit_of(RLIMIT_NOFILE), 1U);
  EXPECT_EQ(limit_of(RLIMIT_NPROC), 0U);
  std::ifstream status("/proc/" + std::to_string(renderer_.pid()) + "/status");
  const std::string text(std::istreambuf_iterator<char>(status), {});
  EXPECT_THAT(text, HasSubstr("NoNewPrivs:\t1"));
  EXPECT_THAT(text, HasSubstr("Seccomp:\t2"));
}

}  // namespace
}  // namespace berth::worker
