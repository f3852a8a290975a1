// The fault worker does what it is told, seen from its supervisor's side.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/process/proc.h"
#include "supervisor/process/process_tree.h"
#include "tests/integration/worker/worker_process.h"

namespace berth::worker {
namespace {

class FaultWorker : public ::testing::Test {
 protected:
  FaultWorker() {
    std::string pattern = "/tmp/berth-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~FaultWorker() override {
    worker_.reset();
    std::filesystem::remove_all(directory_);
  }

  WorkerProcess& start(const std::string& script) {
    const std::string model = directory_ + "/m.gguf";
    std::ofstream(model) << std::string(1UL << 16U, 'x');
    std::ofstream(model + ".fault") << script;
    worker_ = std::make_unique<WorkerProcess>(WorkerProcess::Setup{.model = model});
    return *worker_;
  }
  [[nodiscard]] std::string file(const std::string& name) const { return directory_ + "/" + name; }
  static bool poll_until(const auto& done) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      ::usleep(1000);  // polls
    }
    return true;
  }
  [[nodiscard]] bool exists(const std::string& name) const {
    return ::access(file(name).c_str(), F_OK) == 0;
  }

  std::string directory_;
  std::unique_ptr<WorkerProcess> worker_;
};

TEST_F(FaultWorker, L28_WithoutOrdersItServes) {
  auto& worker = start("");
  const auto event = worker.wait_loaded();
  ASSERT_TRUE(event && event->has_ready());
  EXPECT_TRUE(event->ready().can_chat());
  const auto first = worker.generate(greedy_chat("hello"));
  EXPECT_TRUE(first.status.ok() && first.done);
  EXPECT_EQ(first.text, "The fault worker answers every question with the same nine words. ");
  EXPECT_EQ(worker.generate(greedy_prompt("another")).text, first.text);
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait_exit().code, 0);
}

TEST_F(FaultWorker, L28_ExitsBeforeItListens) {
  auto& worker = start("start: print no such library\\n\nexit 127");
  EXPECT_FALSE(worker.wait_listening());
  EXPECT_EQ(worker.wait_exit().code, 127);
  EXPECT_EQ(worker.log(), "no such library\n");
}

TEST_F(FaultWorker, L28_DiesBySignalInItsLoad) {
  auto& worker = start("load: signal SEGV");
  EXPECT_EQ(worker.wait_exit().signal, SIGSEGV);
}

TEST_F(FaultWorker, L28_PrintsPiecesOfLines) {
  auto& worker = start("start: print one\\ntw\nprint-out o\\x21\\nthr\nexit 0");
  EXPECT_EQ(worker.wait_exit().code, 0);
  EXPECT_EQ(worker.log(), "one\ntwo!\nthr");
}

TEST_F(FaultWorker, L28_SaysWhyItsLoadFailed) {
  auto& worker =
      start("load: progress weights 0.25\nfail permanent unknown model architecture: 'x'");
  const auto event = worker.wait_loaded();
  ASSERT_TRUE(event && event->has_load_failed());
  EXPECT_EQ(event->load_failed().class_(), "permanent");
  EXPECT_EQ(event->load_failed().reason(), "unknown model architecture: 'x'");
  EXPECT_EQ(worker.wait_exit().code, 1);
}

TEST_F(FaultWorker, L28_StallsAndKeepsItsStream) {
  auto& worker = start("load: progress weights 0.5\ntouch " + file("there") + "\nstall");
  ASSERT_TRUE(worker.wait_listening());
  std::optional<v1::ControlEvent> event;
  do event = worker.next_event();
  while (event && event->progress().fraction() != 0.5F);
  ASSERT_TRUE(event);
  ASSERT_TRUE(poll_until([&] { return exists("there"); }));
  worker.signal(SIGKILL);
  EXPECT_EQ(worker.wait_exit().signal, SIGKILL);
}

TEST_F(FaultWorker, L28_IsReadyLate) {
  auto& worker = start("load: wait " + file("go"));
  ASSERT_TRUE(worker.wait_listening());
  ASSERT_TRUE(worker.next_event()->has_progress());
  EXPECT_EQ(worker.generate(greedy_prompt("x")).status.error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  std::ofstream(file("go")) << "";
  const auto event = worker.next_event();
  EXPECT_TRUE(event && event->has_ready());
}

TEST_F(FaultWorker, L28_IgnoresSigterm) {
  auto& worker = start("load: ignore-term");
  ASSERT_TRUE(worker.wait_loaded());
  worker.signal(SIGTERM);
  EXPECT_TRUE(worker.generate(greedy_prompt("still there?")).status.ok());
  worker.close_stdin();
  EXPECT_EQ(worker.wait_exit().code, 0);
}

TEST_F(FaultWorker, L28_LeavesGrandchildren) {
  auto& worker = start("load: spawn 2 ignore-term session");
  ASSERT_TRUE(worker.wait_loaded());
  const auto children = process::children_of(worker.pid());
  ASSERT_EQ(children.size(), 2U);
  worker.signal(SIGTERM);
  EXPECT_EQ(worker.wait_exit().code, 0);
  for (const pid_t child : children) {
    EXPECT_EQ(::kill(child, SIGTERM), 0);
    const auto stat = process::read_stat(child);
    EXPECT_TRUE(stat && stat->group == child) << "has no session of its own, or is gone";
    ::kill(child, SIGKILL);
  }
}

TEST_F(FaultWorker, L28_DropsItsStreamAndLives) {
  auto& worker = start("ready: wait " + file("go") + "\nclose-control");
  ASSERT_TRUE(worker.wait_loaded());
  std::ofstream(file("go")) << "";
  EXPECT_FALSE(worker.next_event());
  EXPECT_TRUE(worker.generate(greedy_prompt("still there?")).status.ok());
}

TEST_F(FaultWorker, L28_CrashesWithinARequest) {
  auto& worker = start("request: say 3\nsignal ABRT");
  ASSERT_TRUE(worker.wait_loaded());
  const auto outcome = worker.generate(greedy_prompt("x"));
  EXPECT_EQ(outcome.ids.size(), 3U);
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(worker.wait_exit().signal, SIGABRT);
}

TEST_F(FaultWorker, L28_BeatsItsHeartWithoutProgress) {
  auto& worker = start("request: freeze on\nhold");
  ASSERT_TRUE(worker.wait_loaded());
  std::vector<std::uint64_t> progress;
  const auto outcome =
      worker.generate(greedy_prompt("x"), [&](const auto&, grpc::ClientContext& context) {
        while (progress.size() < 4) {
          const auto event = worker.next_event();
          if (!event) break;
          if (event->has_heartbeat() && event->heartbeat().active() == 1) {
            progress.push_back(event->heartbeat().progress());
          }
        }
        context.TryCancel();
      });
  ASSERT_EQ(progress.size(), 4U);
  EXPECT_EQ(progress[2], progress[3]);
  EXPECT_FALSE(outcome.done);
}

TEST_F(FaultWorker, L28_ReadsLeaksAndComputesSoThatItIsSeen) {
  auto& worker = start("load: & read 10MiB 600s\n& leak 20MiB 64MiB\n& burn 60 600s\nstall");
  ASSERT_TRUE(worker.wait_listening());
  const auto stat = process::read_stat(worker.pid());
  ASSERT_TRUE(stat);
  process::ProcessTree tree(worker.pid(), stat->start_ticks, ::getpid());
  const auto first = tree.sample();
  ASSERT_TRUE(first && first->read_bytes);
  EXPECT_TRUE(poll_until([&] {
    const auto use = tree.sample();
    return use && *use->read_bytes > *first->read_bytes + (1U << 20U) &&
           use->resident_bytes > first->resident_bytes + (40U << 20U) &&
           use->cpu_time > first->cpu_time + std::chrono::milliseconds(300);
  }));
}

TEST_F(FaultWorker, L28_FloodsItsLog) {
  auto& worker = start("load: flood 4MiB");
  ASSERT_TRUE(worker.wait_loaded());
  const std::string log = worker.log();
  EXPECT_GE(log.size(), 4U << 20U);
  EXPECT_TRUE(log.starts_with("flood line 1: ")) << log.substr(0, 100);
}

TEST_F(FaultWorker, L28_WrongScriptIsSaid) {
  auto& worker = start("load: dance");
  EXPECT_EQ(worker.wait_exit().code, 2);
  EXPECT_EQ(worker.log(), "fault_worker: line 1: there is no order \"dance\".\n");
}

}  // namespace
}  // namespace berth::worker
