#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "tests/integration/worker/worker_process.h"
#include "tests/models/broken_models.h"

namespace berth::worker {
namespace {

using testing::HasSubstr;

class Load : public testing::Test {
 protected:
  Load() {
    std::string pattern = "/tmp/berth-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~Load() override { std::filesystem::remove_all(directory_); }

  // What a worker says of a model that it cannot load; it then ends with status 1.
  static v1::LoadFailed failure_of(const std::string& model,
                                   const std::vector<std::string>& arguments = {},
                                   const std::vector<std::string>& wrapper = {}) {
    WorkerProcess worker({.model = model, .arguments = arguments, .wrapper = wrapper});
    const auto event = worker.wait_loaded();
    EXPECT_TRUE(event && event->has_load_failed()) << worker.log();
    const auto exit = worker.wait_exit();
    EXPECT_EQ(exit.code, 1) << worker.log();
    EXPECT_FALSE(std::filesystem::exists(worker.socket()));
    return event ? event->load_failed() : v1::LoadFailed();
  }

  std::string directory_;
};

TEST_F(Load, L6_ReadyComesOnceWithTheFacts) {
  WorkerProcess worker({tinychat(), {"--context", "2048", "--sequences", "2"}});
  ASSERT_TRUE(worker.wait_listening());
  std::vector<std::string> phases;
  auto event = worker.next_event();
  for (; event && event->has_progress(); event = worker.next_event()) {
    phases.push_back(event->progress().phase());
    EXPECT_GE(event->progress().fraction(), 0);
    EXPECT_LE(event->progress().fraction(), 1);
  }
  EXPECT_FALSE(phases.empty());
  const std::vector<std::string> order = {"starting", "weights", "context", "warmup"};
  const auto rank = [&](const std::string& phase) {
    return std::find(order.begin(), order.end(), phase) - order.begin();
  };
  EXPECT_TRUE(std::is_sorted(phases.begin(), phases.end(), [&](const auto& a, const auto& b) {
    return rank(a) < rank(b);
  })) << testing::PrintToString(phases);
  ASSERT_TRUE(event && event->has_ready()) << worker.log();
  const auto& ready = event->ready();
  EXPECT_EQ(ready.protocol(), 1U);
  EXPECT_THAT(ready.build_id(), HasSubstr("libllama"));
  EXPECT_THAT(ready.build_id(), HasSubstr("cpu"));
  EXPECT_EQ(ready.window(), 2048U);
  EXPECT_EQ(ready.sequences(), 2U);
  EXPECT_EQ(ready.vocabulary(), 4516U);
  EXPECT_EQ(ready.longest_token_bytes(), 13U);
  EXPECT_TRUE(ready.can_chat());
  EXPECT_GE(ready.threads(), 1U);
  ASSERT_EQ(ready.memory_size(), 1);
  EXPECT_EQ(ready.memory(0).domain(), "host");
  EXPECT_GT(ready.memory(0).weights_bytes(), 2000000U);
  EXPECT_EQ(ready.memory(0).kv_bytes(), 2048U * 2048);  // 2 KiB a token, in one pool
  EXPECT_GT(ready.memory(0).working_bytes(), 0U);
}

TEST_F(Load, L6_T61_AFullMicroBatchIsComputedBeforeReady) {
  for (const bool embeds : {false, true}) {
    std::vector<std::string> arguments = {"--context", "1024", "--prove-micro-batch"};
    if (embeds) arguments.emplace_back("--embeddings");
    WorkerProcess worker({tinychat(), arguments});
    const auto event = worker.wait_loaded();
    ASSERT_TRUE(event && event->has_ready()) << worker.log();
  }
}

TEST_F(Load, L15_BrokenModelsFailWithTheirClass) {
  using test_models::Fault;
  const std::map<Fault, std::string> not_permanent = {
      {Fault::kMissingShard, "unclassified"},  // the cause lies beside the file
  };
  for (const auto& info : test_models::all_faults()) {
    const auto path = test_models::write_broken_model(
        info.fault, directory_ + "/" + std::string(info.name) + ".gguf");
    ASSERT_TRUE(path.has_value());
    const auto failed = failure_of(*path);
    const auto other = not_permanent.find(info.fault);
    EXPECT_EQ(failed.class_(), other == not_permanent.end() ? "permanent" : other->second)
        << info.name << ": " << failed.reason();
    EXPECT_FALSE(failed.reason().empty()) << info.name;
    EXPECT_THAT(failed.reason(), testing::Not(HasSubstr(directory_))) << info.name;
  }
}

TEST_F(Load, L15_MissingFileIsUnclassified) {
  const auto failed = failure_of(directory_ + "/none.gguf");
  EXPECT_EQ(failed.class_(), "unclassified");
  EXPECT_THAT(failed.reason(), HasSubstr("No such file"));
}

TEST_F(Load, L15_ContextThatCannotBeAllocatedIsResource) {
  // 4 Mi tokens of 4 KiB.
  const auto failed = failure_of(tinychat(), {"--context", "4194304", "--kv-type", "f32"},
                                 {"/usr/bin/prlimit", "--as=4294967296"});
  EXPECT_EQ(failed.class_(), "resource") << failed.reason();
}

TEST_F(Load, L15_MoreSequencesThanLibllamaComputesArePermanent) {
  const auto failed = failure_of(tinychat(), {"--sequences", "1024", "--batch", "1024"});
  EXPECT_EQ(failed.class_(), "permanent");
  EXPECT_THAT(failed.reason(), testing::MatchesRegex(
                                   "libllama computes at most [0-9]+ sequences at once, not 1024"));
}

TEST_F(Load, FailureEndsTheProcessAlsoWithoutASupervisor) {
  WorkerProcess worker({directory_ + "/none.gguf", {}});
  EXPECT_EQ(worker.wait_exit().code, 1);
  EXPECT_THAT(worker.log(), HasSubstr("No such file"));
}

// Exit status and output of a one-shot use; -1: it was ended by a signal, or did not end in time.
std::pair<int, std::string> run(std::vector<std::string> arguments, bool with_errors = true) {
  arguments.insert(arguments.begin(), BERTH_WORKER);
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::array<int, 2> ends{-1, -1};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDOUT_FILENO);
  if (with_errors) ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDERR_FILENO);
  pid_t pid = -1;
  const int problem = ::posix_spawn(&pid, BERTH_WORKER, &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(problem, 0);
  if (problem != 0) return {-1, ""};
  theirs.reset();

  // Whether there is something to read, or the end; else it is ended.
  const auto bound = std::chrono::steady_clock::now() + kPatience;
  const auto wait_for = [&](int fd) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(bound - std::chrono::steady_clock::now());
    pollfd waited{fd, POLLIN, 0};
    if (left.count() > 0 && ::poll(&waited, 1, static_cast<int>(left.count())) == 1) return true;
    ADD_FAILURE() << "it does not end";
    ::kill(pid, SIGKILL);
    return false;
  };
  std::string output;
  std::array<char, 4096> bytes{};
  while (wait_for(ours.get())) {
    const auto size = ::read(ours.get(), bytes.data(), bytes.size());
    if (size <= 0) break;
    output.append(bytes.data(), static_cast<std::size_t>(size));
  }
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  wait_for(pidfd.get());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

TEST(OneShot, Uses) {
  const auto version = run({"--version"});
  EXPECT_EQ(version.first, 0);
  EXPECT_THAT(version.second, HasSubstr("llama.cpp"));
  const auto devices = run({"--devices"}, false);
  EXPECT_EQ(devices.first, 0);
  EXPECT_THAT(devices.second, HasSubstr("\"type\":\"cpu\""));
  EXPECT_THAT(run({"--knows-architecture", "qwen3"}).second,
              HasSubstr("architecture qwen3: known\n"));
  EXPECT_THAT(run({"--knows-architecture", "nobodys"}).second,
              HasSubstr("architecture nobodys: unknown\n"));
  EXPECT_EQ(run({"--help"}).first, 0);
  EXPECT_EQ(run({}).first, 2);
}

}  // namespace
}  // namespace berth::worker
