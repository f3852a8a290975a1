#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/event.h"
#include "common/fd.h"
#include "supervisor/command_runs.h"
#include "supervisor/process/asio_clock.h"
#include "supervisor/process/process_launcher.h"
#include "supervisor/process_tree_sampler.h"
#include "supervisor/residency/load_guard.h"
#include "supervisor/worker_connectors.h"
#include "tests/unit/process/loop.h"
#include "tests/unit/process/temp_dir.h"

namespace berth {
namespace {

using ::testing::HasSubstr;
using testing::run_until;

struct NoEvents : EventSink {
  void emit(Event /*event*/) override {}
};

struct NoWorkers : rpc::WorkerConnector {
  std::unique_ptr<rpc::WorkerClient> connect(const std::string& /*socket_path*/,
                                             const std::string& /*instance_id*/,
                                             rpc::WorkerObserver& /*observer*/) override {
    return nullptr;
  }
};

// A real program, asked by the real client and watched by the real guard.
class CommandLoadTest : public ::testing::Test, protected rpc::WorkerObserver {
 protected:
  ~CommandLoadTest() override {
    client_.reset();
    guard_.reset();
    if (!child_) return;
    child_->signal_group(SIGKILL);
    EXPECT_TRUE(run_until(io_, [this] { return recorder_.exit.has_value(); }));
  }

  void load(const std::vector<std::string>& options, std::chrono::seconds window) {
    auto port = runs_.ports().reserve();
    ASSERT_TRUE(port) << port.error().message;
    process::LaunchSpec spec;
    spec.program = BERTH_TEST_PYTHON;
    spec.argv = {BERTH_TEST_PYTHON, "-B", BERTH_TEST_PROGRAM, "--port", std::to_string(port->port)};
    spec.argv.insert(spec.argv.end(), options.begin(), options.end());
    spec.environment = {"PATH=/usr/bin:/bin"};
    const UniqueFd log(::open(dir_.file("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                              S_IRUSR | S_IWUSR));
    spec.output.reset(::fcntl(log.get(), F_DUPFD_CLOEXEC, 0));
    spec.reservation = std::move(port->socket);
    auto child = launcher_.launch(std::move(spec), recorder_);
    ASSERT_TRUE(child) << child.error().message;
    child_ = *std::move(child);
    CommandRun run;
    run.model = "mlx";
    run.address.port = port->port;
    run.pid = child_->pid();
    runs_.put("i", std::move(run));
    client_ = connectors_.connect("", "i", *this);
    core::StallPolicy policy;
    policy.window = window;
    UniqueFd watched(::fcntl(log.get(), F_DUPFD_CLOEXEC, 0));
    guard_ = std::make_unique<residency::LoadGuard>(
        clock_, policy,
        std::make_unique<ProcessTreeSampler>(clock_, run_here_, child_->pid(),
                                             child_->start_ticks(), std::move(watched)),
        [this](std::string reason) { stalled_ = std::move(reason); });
  }
  [[nodiscard]] std::string log() const { return testing::slurp(dir_.file("log")); }

  void on_progress(const rpc::WorkerProgress& /*progress*/) override {}
  void on_own_request() override {
    ++own_requests_;
    if (guard_) guard_->note_own_request();
  }
  void on_probe(std::string_view saw) override {
    if (guard_) guard_->note_probe(saw);
  }
  void on_ready(const rpc::WorkerReady& /*ready*/) override { ready_ = true; }
  void on_load_failed(const rpc::WorkerLoadFailed& failed) override { failed_ = failed.reason; }
  void on_heartbeat(const rpc::WorkerHeartbeat& /*heartbeat*/) override {}
  void on_disconnected() override {}

  testing::TempDir dir_;
  boost::asio::io_context io_{1};
  process::AsioClock clock_{io_};
  NoEvents events_;
  NoWorkers workers_;
  CommandRuns runs_;
  // The pool is full for ever: looks do not wait for it.
  process::RunBlocking never_ = [](const std::function<void()>& /*work*/) {};
  process::RunBlocking run_here_ = [](const std::function<void()>& look) { look(); };
  WorkerConnectors connectors_{{.clock = clock_,
                                .events = events_,
                                .io = io_,
                                .run_blocking = never_,
                                .run_look = run_here_,
                                .runs = runs_,
                                .workers = workers_}};
  process::RealLauncher launcher_{io_};
  testing::Recorder recorder_;
  std::unique_ptr<process::ChildProcess> child_;
  std::unique_ptr<rpc::WorkerClient> client_;
  std::unique_ptr<residency::LoadGuard> guard_;
  std::optional<std::string> stalled_;
  std::string failed_;
  int own_requests_ = 0;
  bool ready_ = false;
};

TEST_F(CommandLoadTest, L8_AProgramThatLogsOurQuestionsAndIsNeverReadyStalls) {
  load({"--hangs", "--refuses"}, std::chrono::seconds(4));
  ASSERT_TRUE(run_until(io_, [this] { return stalled_ || ready_ || !failed_.empty(); }));
  ASSERT_TRUE(stalled_) << failed_;
  EXPECT_THAT(*stalled_, HasSubstr("nothing moved for"));
  EXPECT_THAT(*stalled_, HasSubstr("; when last asked it answered 503"));
  EXPECT_THAT(log(), HasSubstr("\"POST /v1/completions HTTP/1.1\" 503"));
  // Of one whose log was taken for life the growing pauses would be the end, much later.
  EXPECT_LT(own_requests_, 100);
}

TEST_F(CommandLoadTest, L8_SoDoesOneThatHoldsTheQuestion) {
  load({"--hangs"}, std::chrono::seconds(4));
  ASSERT_TRUE(run_until(io_, [this] { return stalled_ || ready_ || !failed_.empty(); }));
  ASSERT_TRUE(stalled_) << failed_;
  EXPECT_THAT(log(), HasSubstr("GET /v1/models"));
}

TEST_F(CommandLoadTest, L6_L27_AProgramThatComputesIsReady) {
  load({"--survives"}, std::chrono::seconds(60));
  ASSERT_TRUE(run_until(io_, [this] { return stalled_ || ready_ || !failed_.empty(); }));
  EXPECT_TRUE(ready_) << failed_;
}

}  // namespace
}  // namespace berth
