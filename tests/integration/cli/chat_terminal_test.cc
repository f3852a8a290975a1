#include <gtest/gtest.h>
#include <sys/wait.h>

#include <boost/json.hpp>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/integration/cli/pseudo_terminal.h"
#include "tests/unit/cli/fake_daemon.h"

namespace berth::cli {
namespace {

using test::FakeDaemon;
using test::PseudoTerminal;
using test::TemporaryDirectory;

constexpr char kCtrlC[] = "\x03";
constexpr char kCtrlD[] = "\x04";
constexpr char kPasteBegin[] = "\x1b[200~";
constexpr char kPasteEnd[] = "\x1b[201~";
constexpr std::chrono::seconds kGenerous{60};

class TerminalTest : public testing::Test {
 protected:
  TerminalTest() {
    daemon.list_models = [](grpc::ServerContext&, const v1::ListModelsRequest&,
                            v1::ListModelsResponse& reply) {
      *reply.add_models() = test::model("demo");
      return grpc::Status::OK;
    };
    daemon.generate = [this](grpc::ServerContext& call, const v1::GenerateRequest& request,
                             grpc::ServerWriter<v1::GenerateEvent>& writer) {
      const auto messages = boost::json::parse(request.chat().messages_json()).as_array();
      const std::string question(messages.back().at("content").as_string());
      {
        const std::lock_guard lock(mutex_);
        questions_.push_back(request.chat().messages_json());
      }
      if (question == "slow") {
        writer.Write(test::token("slowly "));
        const bool cancelled = test::wait_cancelled(call);
        const std::lock_guard lock(mutex_);
        cancelled_ = cancelled;
        changed_.notify_all();
        return grpc::Status::CANCELLED;
      }
      writer.Write(test::token("answer to <" + question + ">"));
      writer.Write(test::done());
      return grpc::Status::OK;
    };
  }

  PseudoTerminal start(std::vector<std::string> arguments,
                       PseudoTerminal::Size size = {.rows = 24, .columns = 80}) {
    arguments.insert(arguments.begin(), BERTH_PROGRAM);
    return start_program(arguments, size);
  }
  PseudoTerminal start_program(const std::vector<std::string>& arguments,
                               PseudoTerminal::Size size = {.rows = 24, .columns = 80}) {
    return PseudoTerminal(
        arguments,
        {"TERM=xterm", "NO_COLOR=1", "LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin", "HOME=" + home_.path(),
         "BERTH_CONFIG=/nonexistent", "BERTH_ENDPOINT=" + daemon.endpoint()},
        size);
  }

  bool wait_cancelled() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kGenerous, [this] { return cancelled_; });
  }
  std::string question(std::size_t index) {
    const std::lock_guard lock(mutex_);
    return index < questions_.size() ? questions_[index] : "";
  }
  static void expect_ok(PseudoTerminal& terminal) {
    const auto status = terminal.wait_end();
    ASSERT_TRUE(status) << terminal.screen();
    EXPECT_TRUE(WIFEXITED(*status)) << *status;
    EXPECT_EQ(WEXITSTATUS(*status), 0) << terminal.screen();
  }
  static void expect_signal(PseudoTerminal& terminal, int signal) {
    const auto status = terminal.wait_end();
    ASSERT_TRUE(status) << terminal.screen();
    EXPECT_TRUE(WIFSIGNALED(*status)) << *status << terminal.screen();
    EXPECT_EQ(WTERMSIG(*status), signal);
  }
  [[nodiscard]] std::string history() const {
    std::ifstream file(home_.path() + "/.local/state/berth/history");
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  FakeDaemon daemon;
  TemporaryDirectory home_;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> questions_;
  bool cancelled_ = false;
};

TEST_F(TerminalTest, TalksAndLeavesByCtrlD) {
  PseudoTerminal terminal = start({"chat", "demo"});
  ASSERT_TRUE(terminal.wait_for("/help for commands")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for(">>> ")) << terminal.screen();
  terminal.type("grüße 日本\r");
  ASSERT_TRUE(terminal.wait_for("answer to <grüße 日本>")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type(kCtrlD);
  expect_ok(terminal);
  EXPECT_EQ(question(0), R"([{"role":"user","content":"grüße 日本"}])");
  EXPECT_EQ(history(), "grüße 日本\n");
}

TEST_F(TerminalTest, CtrlCStopsTheAnswerAndNotTheProgram) {
  PseudoTerminal terminal = start({"chat", "demo"});
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("slow\r");
  ASSERT_TRUE(terminal.wait_for("slowly")) << terminal.screen();
  EXPECT_TRUE(terminal.cooked()) << "keys make signals while the model answers";
  terminal.type(kCtrlC);
  ASSERT_TRUE(terminal.wait_for("[stopped]")) << terminal.screen();
  EXPECT_TRUE(wait_cancelled());
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("next\r");
  ASSERT_TRUE(terminal.wait_for("answer to <next>")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("/exit\r");
  expect_ok(terminal);
  EXPECT_NE(question(1).find(R"({"role":"assistant","content":"slowly "})"), std::string::npos)
      << question(1);
}

TEST_F(TerminalTest, CtrlCAtThePromptClearsTheLineAndTwiceLeaves) {
  PseudoTerminal terminal = start({"chat", "demo"});
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("half a line");
  ASSERT_TRUE(terminal.wait_for("half a line"));
  terminal.type(kCtrlC);
  ASSERT_TRUE(terminal.wait_for("once more, or Ctrl-D")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("whole\r");
  ASSERT_TRUE(terminal.wait_for("answer to <whole>")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type(kCtrlC);
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type(kCtrlC);
  expect_ok(terminal);
}

TEST_F(TerminalTest, PasteIsOneMessage) {
  PseudoTerminal terminal = start({"chat", "demo"});
  ASSERT_TRUE(terminal.wait_for("\x1b[?2004h")) << "asks for marked pastes";
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type(kPasteBegin + std::string("one\rtwo\r\rthree\tx\x1b[31m\r") + kPasteEnd);
  ASSERT_TRUE(terminal.wait_for("three")) << terminal.screen();
  terminal.type("\r");
  ASSERT_TRUE(terminal.wait_for("answer to <one")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for(">>> "));
  // Called back from the history it is the same message.
  terminal.type("\x1b[A\r");
  ASSERT_TRUE(terminal.wait_for("answer to <one")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type(kCtrlD);
  expect_ok(terminal);
  EXPECT_NE(terminal.screen().find("\x1b[?2004l"), std::string::npos);
  EXPECT_EQ(question(0), R"([{"role":"user","content":"one\ntwo\n\nthree\tx[31m"}])");
  EXPECT_TRUE(question(1).ends_with(R"({"role":"user","content":"one\ntwo\n\nthree\tx[31m"}])"))
      << question(1);
}

TEST_F(TerminalTest, LongPasteSurvivesTheHistory) {
  PseudoTerminal terminal = start({"chat", "demo"});
  ASSERT_TRUE(terminal.wait_for(">>> "));
  std::string text;
  for (int i = 0; i < 200; ++i) text += "this is line number " + std::to_string(i) + "\r";
  text += "the end";
  terminal.type(kPasteBegin + text + kPasteEnd);
  ASSERT_TRUE(terminal.wait_for("the end")) << terminal.screen();
  terminal.type("\r");
  ASSERT_TRUE(terminal.wait_for("answer to <this is")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("\x1b[A");
  ASSERT_TRUE(terminal.wait_for("the end")) << terminal.rest();
  terminal.type("\r");
  ASSERT_TRUE(terminal.wait_for("answer to <this is")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type(kCtrlD);
  expect_ok(terminal);
  const auto last = boost::json::parse(question(1)).as_array().back().at("content").as_string();
  EXPECT_EQ(last.size(), text.size());
}

TEST_F(TerminalTest, SeveralLinesAreTypedWithQuotesAndBackslash) {
  PseudoTerminal terminal = start({"chat", "demo"});
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("\"\"\"\r");
  ASSERT_TRUE(terminal.wait_for("... "));
  terminal.type("a\r");
  ASSERT_TRUE(terminal.wait_for("... "));
  terminal.type("b\"\"\"\r");
  ASSERT_TRUE(terminal.wait_for("answer to <a")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("c\\\r");
  ASSERT_TRUE(terminal.wait_for("... "));
  terminal.type("d\r");
  ASSERT_TRUE(terminal.wait_for("answer to <c")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("e\x1b\rf\r");  // Alt-Enter
  ASSERT_TRUE(terminal.wait_for("answer to <e")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type(kCtrlD);
  expect_ok(terminal);
  EXPECT_EQ(question(0), R"([{"role":"user","content":"a\nb"}])");
  EXPECT_TRUE(question(1).ends_with(R"({"role":"user","content":"c\nd"}])")) << question(1);
  EXPECT_TRUE(question(2).ends_with(R"({"role":"user","content":"e\nf"}])")) << question(2);
}

TEST_F(TerminalTest, HistoryIsThereInTheNextChat) {
  {
    PseudoTerminal terminal = start({"chat", "demo"});
    ASSERT_TRUE(terminal.wait_for(">>> "));
    terminal.type("remember me\r");
    ASSERT_TRUE(terminal.wait_for("answer to <remember me>"));
    ASSERT_TRUE(terminal.wait_for(">>> "));
    terminal.type(kCtrlD);
    expect_ok(terminal);
  }
  PseudoTerminal terminal = start({"chat", "demo"});
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("\x1b[A\r");
  ASSERT_TRUE(terminal.wait_for("answer to <remember me>")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("\x12mem\r");  // Ctrl-R
  ASSERT_TRUE(terminal.wait_for("answer to <remember me>")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type(kCtrlD);
  expect_ok(terminal);
}

TEST_F(TerminalTest, TerminateAtThePromptLeavesTheTerminalAsItWas) {
  PseudoTerminal terminal = start({"chat", "demo"});
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("x");
  ASSERT_TRUE(terminal.wait_for("x"));
  EXPECT_FALSE(terminal.cooked());
  terminal.signal(SIGTERM);
  expect_ok(terminal);
  EXPECT_TRUE(terminal.cooked());
  EXPECT_NE(terminal.screen().find("\x1b[?2004l"), std::string::npos);
}

TEST_F(TerminalTest, TerminateInAnAnswerEndsTheProgramAndTheWork) {
  PseudoTerminal terminal = start({"chat", "demo"});
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("slow\r");
  ASSERT_TRUE(terminal.wait_for("slowly"));
  terminal.signal(SIGTERM);
  expect_ok(terminal);
  EXPECT_TRUE(wait_cancelled());
}

TEST_F(TerminalTest, ASecondTerminateEndsAChatThatCannotWrite) {
  PseudoTerminal terminal = start({"chat", "demo"});
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type("slow\r");
  ASSERT_TRUE(terminal.wait_for("slowly"));
  terminal.hold_output();
  terminal.signal(SIGTERM);
  EXPECT_TRUE(wait_cancelled());
  terminal.signal(SIGTERM);
  expect_signal(terminal, SIGTERM);
  EXPECT_TRUE(terminal.cooked());
}

TEST_F(TerminalTest, ASecondHangUpAtThePromptRestoresTheTerminal) {
  PseudoTerminal terminal = start({"chat", "demo"});
  ASSERT_TRUE(terminal.wait_for(">>> "));
  EXPECT_FALSE(terminal.cooked());
  terminal.hold_output();
  terminal.signal(SIGTERM);
  terminal.signal(SIGHUP);
  // Where both wait, the kernel says which one is the second.
  const auto status = terminal.wait_end();
  ASSERT_TRUE(status) << terminal.screen();
  ASSERT_TRUE(WIFSIGNALED(*status)) << *status;
  EXPECT_TRUE(WTERMSIG(*status) == SIGHUP || WTERMSIG(*status) == SIGTERM) << *status;
  EXPECT_TRUE(terminal.cooked());
}

TEST_F(TerminalTest, SignalsEndAChatWhoseDaemonDoesNotAnswer) {
  std::mutex mutex;
  std::condition_variable changed;
  int calls = 0;
  daemon.list_models = [&](grpc::ServerContext& call, const v1::ListModelsRequest&,
                           v1::ListModelsResponse&) {
    {
      const std::lock_guard lock(mutex);
      ++calls;
      changed.notify_all();
    }
    EXPECT_TRUE(test::wait_cancelled(call));
    return grpc::Status::CANCELLED;
  };
  for (const int signal : {SIGINT, SIGTERM}) {
    const int before = calls;
    PseudoTerminal terminal = start({"chat", "demo"});
    {
      std::unique_lock lock(mutex);
      ASSERT_TRUE(changed.wait_for(lock, kGenerous, [&] { return calls > before; }));
    }
    if (signal == SIGINT) {
      terminal.type(kCtrlC);
    } else {
      terminal.signal(signal);
    }
    expect_signal(terminal, signal);
  }
}

TEST_F(TerminalTest, NarrowTerminalAndResizeAreSurvived) {
  PseudoTerminal terminal = start({"chat", "demo"}, {.rows = 5, .columns = 20});
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.signal(SIGWINCH);
  terminal.type(std::string(300, 'w') + "\r");
  ASSERT_TRUE(terminal.wait_for("answer to <www")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_for(">>> "));
  terminal.type(kCtrlD);
  expect_ok(terminal);
}

TEST_F(TerminalTest, EscapeSequencesOfTheModelAreNotObeyed) {
  PseudoTerminal terminal = start({"chat", "demo", "\x1b]0;owned\x07 \x1b[2J"});
  expect_ok(terminal);
  EXPECT_EQ(terminal.screen().find("\x1b]0;"), std::string::npos);
  EXPECT_EQ(terminal.screen().find("\x1b[2J"), std::string::npos);
  EXPECT_NE(terminal.screen().find("\xE2\x90\x9B[2J"), std::string::npos) << terminal.screen();
}

TEST_F(TerminalTest, CtrlCEndsACompletionAsASignalWould) {
  daemon.generate = [](grpc::ServerContext& call, const v1::GenerateRequest&,
                       grpc::ServerWriter<v1::GenerateEvent>& writer) {
    writer.Write(test::loading("weights", 0.4F));
    EXPECT_TRUE(test::wait_cancelled(call));
    return grpc::Status::CANCELLED;
  };
  PseudoTerminal terminal = start({"complete", "demo", "x"});
  ASSERT_TRUE(terminal.wait_for("demo: loading (weights)")) << terminal.screen();
  terminal.type(kCtrlC);
  const auto status = terminal.wait_end();
  ASSERT_TRUE(status) << terminal.screen();
  EXPECT_TRUE(WIFSIGNALED(*status));
  EXPECT_EQ(WTERMSIG(*status), SIGINT);
  EXPECT_NE(terminal.rest().find("\r\x1b[K"), std::string::npos) << "takes the bar away";
}

TEST_F(TerminalTest, ATerminatedCompletionEndsByThatSignal) {
  daemon.generate = [](grpc::ServerContext& call, const v1::GenerateRequest&,
                       grpc::ServerWriter<v1::GenerateEvent>& writer) {
    writer.Write(test::loading("weights", 0.4F));
    EXPECT_TRUE(test::wait_cancelled(call));
    return grpc::Status::CANCELLED;
  };
  PseudoTerminal terminal = start({"complete", "demo", "x"});
  ASSERT_TRUE(terminal.wait_for("demo: loading (weights)")) << terminal.screen();
  terminal.signal(SIGTERM);
  expect_signal(terminal, SIGTERM);
}

TEST_F(TerminalTest, ATerminatedLoadEndsByThatSignal) {
  daemon.load = [](grpc::ServerContext& call, const v1::LoadModelRequest&,
                   grpc::ServerWriter<v1::LoadEvent>& writer) {
    v1::LoadEvent event;
    event.mutable_loading()->set_phase("weights");
    writer.Write(event);
    EXPECT_TRUE(test::wait_cancelled(call));
    return grpc::Status::CANCELLED;
  };
  PseudoTerminal terminal = start({"load", "demo"});
  ASSERT_TRUE(terminal.wait_for("demo: loading (weights)")) << terminal.screen();
  terminal.signal(SIGHUP);
  ASSERT_TRUE(terminal.wait_for("the load of demo goes on")) << terminal.screen();
  expect_signal(terminal, SIGHUP);
}

TEST_F(TerminalTest, CtrlCLeavesALoadRunning) {
  daemon.load = [](grpc::ServerContext& call, const v1::LoadModelRequest&,
                   grpc::ServerWriter<v1::LoadEvent>& writer) {
    v1::LoadEvent event;
    event.mutable_loading()->set_phase("weights");
    event.mutable_loading()->set_fraction(0.4F);
    writer.Write(event);
    EXPECT_TRUE(test::wait_cancelled(call));
    return grpc::Status::CANCELLED;
  };
  PseudoTerminal terminal = start({"load", "demo"});
  ASSERT_TRUE(terminal.wait_for("demo: loading (weights)")) << terminal.screen();
  terminal.type(kCtrlC);
  ASSERT_TRUE(terminal.wait_for("the load of demo goes on")) << terminal.screen();
  ASSERT_TRUE(terminal.wait_end());
}

TEST_F(TerminalTest, SignalsThatWereSwitchedOffStaySo) {
  std::mutex mutex;
  std::condition_variable changed;
  bool typed = false;
  daemon.load = [&](grpc::ServerContext&, const v1::LoadModelRequest&,
                    grpc::ServerWriter<v1::LoadEvent>& writer) {
    v1::LoadEvent event;
    event.mutable_loading()->set_phase("weights");
    writer.Write(event);
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, kGenerous, [&] { return typed; }));
    event.mutable_ready()->set_pid(7);
    writer.Write(event);
    return grpc::Status::OK;
  };
  PseudoTerminal terminal =
      start_program({"/bin/sh", "-c", "trap '' INT; exec \"$0\" load demo", BERTH_PROGRAM});
  ASSERT_TRUE(terminal.wait_for("demo: loading (weights)")) << terminal.screen();
  terminal.type(kCtrlC);
  // The kernel throws away what is being written when the key is pressed, and echoes it then.
  ASSERT_TRUE(terminal.wait_for("^C")) << terminal.screen();
  {
    const std::lock_guard lock(mutex);
    typed = true;
    changed.notify_all();
  }
  EXPECT_TRUE(terminal.wait_for("demo is ready (pid 7)")) << terminal.screen();
  expect_ok(terminal);
}

TEST_F(TerminalTest, CtrlCEndsFollowedEvents) {
  daemon.watch_events = [](grpc::ServerContext& call, const v1::WatchEventsRequest&,
                           grpc::ServerWriter<v1::Event>& writer) {
    v1::Event event;
    event.set_name("load.started");
    event.set_level("info");
    writer.Write(event);
    EXPECT_TRUE(test::wait_cancelled(call));
    return grpc::Status::CANCELLED;
  };
  PseudoTerminal terminal = start({"events", "-f"});
  ASSERT_TRUE(terminal.wait_for("load.started")) << terminal.screen();
  terminal.type(kCtrlC);
  const auto status = terminal.wait_end();
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFSIGNALED(*status));
}

}  // namespace
}  // namespace berth::cli
