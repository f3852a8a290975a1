#include "supervisor/cli/chat/chat.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <deque>
#include <filesystem>
#include <mutex>

#include "tests/unit/cli/fake_daemon.h"
#include "tests/unit/cli/test_program.h"

namespace berth::cli {
namespace {

using test::detail;
using test::FakeDaemon;
using test::refuse;
using test::TemporaryDirectory;
using test::TestProgram;

// A person who types lines; what stands behind the last one is Ctrl-D.
class Typist : public LineSource {
 public:
  void type(std::string text) { lines_.push_back({Line::Kind::kText, std::move(text)}); }
  void press_ctrl_c() { lines_.push_back({Line::Kind::kInterrupt, {}}); }
  Line read(const std::string& /*prompt*/) override {
    if (lines_.empty()) return {Line::Kind::kEnd, {}};
    Line line = lines_.front();
    lines_.pop_front();
    return line;
  }
  void remember(const std::string& /*entry*/) override {}
  [[nodiscard]] std::size_t left() const { return lines_.size(); }

 private:
  std::deque<Line> lines_;
};

class ChatTest : public testing::Test {
 protected:
  ChatTest() {
    daemon.generate = [this](grpc::ServerContext& call, const v1::GenerateRequest& request,
                             grpc::ServerWriter<v1::GenerateEvent>& writer) {
      {
        const std::lock_guard lock(mutex);
        asked.push_back(request);
      }
      return answer(call, request, writer);
    };
    answer = [](grpc::ServerContext&, const v1::GenerateRequest& request,
                grpc::ServerWriter<v1::GenerateEvent>& writer) {
      const auto messages = boost::json::parse(request.chat().messages_json()).as_array();
      writer.Write(test::token("re: "));
      writer.Write(test::token(std::string(messages.back().at("content").as_string())));
      writer.Write(test::done());
      return grpc::Status::OK;
    };
  }

  ExitCode chat(ChatOptions options = {}) {
    options.model = "demo";
    CommonOptions common;
    common.endpoint = daemon.endpoint();
    Context context(program.environment, common);
    return Chat(context, options, typist).run();
  }
  std::string messages(std::size_t question) { return asked.at(question).chat().messages_json(); }

  FakeDaemon daemon;
  FakeDaemon::Stream<v1::GenerateRequest, v1::GenerateEvent> answer;
  TestProgram program{{.out = true, .err = false, .columns = 80}};
  Typist typist;
  std::mutex mutex;
  std::vector<v1::GenerateRequest> asked;
};

TEST_F(ChatTest, KeepsTheConversation) {
  typist.type("one");
  typist.type("two");
  ChatOptions options;
  options.system = "Be brief.";
  EXPECT_EQ(chat(options), ExitCode::kOk);
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(messages(1),
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"one"},)"
            R"({"role":"assistant","content":"re: one"},{"role":"user","content":"two"}])");
  EXPECT_NE(program.out.text.find("re: one\n"), std::string::npos);
}

TEST_F(ChatTest, InterruptStopsTheAnswerAndNotTheProgram) {
  answer = [this](grpc::ServerContext& call, const v1::GenerateRequest&,
                  grpc::ServerWriter<v1::GenerateEvent>& writer) {
    if (asked.size() == 1) {
      writer.Write(test::token("half an"));
      EXPECT_TRUE(test::wait_cancelled(call));
      return grpc::Status(grpc::Status::CANCELLED);
    }
    writer.Write(test::token("whole"));
    writer.Write(test::done());
    return grpc::Status(grpc::Status::OK);
  };
  // Only when the first part has come: it is to stay in the conversation.
  program.out.on_write = [this] {
    if (program.out.text.ends_with("half an")) program.interrupts.interrupt();
  };
  typist.type("one");
  typist.type("two");
  EXPECT_EQ(chat(), ExitCode::kOk);
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(messages(1),
            R"([{"role":"user","content":"one"},{"role":"assistant","content":"half an"},)"
            R"({"role":"user","content":"two"}])");
  EXPECT_NE(program.out.text.find("half an\n[stopped]\n"), std::string::npos) << program.out.text;
  EXPECT_NE(program.out.text.find("whole"), std::string::npos);
}

TEST_F(ChatTest, InterruptBeforeTheFirstTokenTakesTheQuestionBack) {
  answer = [this](grpc::ServerContext& call, const v1::GenerateRequest&,
                  grpc::ServerWriter<v1::GenerateEvent>& writer) {
    if (asked.size() == 1) {
      program.interrupts.interrupt();
      EXPECT_TRUE(test::wait_cancelled(call));
      return grpc::Status(grpc::Status::CANCELLED);
    }
    writer.Write(test::done());
    return grpc::Status(grpc::Status::OK);
  };
  typist.type("one");
  typist.type("two");
  EXPECT_EQ(chat(), ExitCode::kOk);
  EXPECT_EQ(messages(1), R"([{"role":"user","content":"two"}])");
}

TEST_F(ChatTest, ErrorsAreToldAndTheChatGoesOn) {
  answer = [this](grpc::ServerContext& call, const v1::GenerateRequest&,
                  grpc::ServerWriter<v1::GenerateEvent>& writer) {
    if (asked.size() == 1) {
      writer.Write(test::token("half"));
      return refuse(call, grpc::StatusCode::INTERNAL,
                    detail("worker_died", "the worker of demo ended"));
    }
    if (asked.size() == 2) {
      return refuse(call, grpc::StatusCode::INVALID_ARGUMENT,
                    detail("window_exceeded", "the prompt has 9 tokens, the window 8"));
    }
    writer.Write(test::done());
    return grpc::Status(grpc::Status::OK);
  };
  typist.type("one");
  typist.type("two");
  typist.type("three");
  EXPECT_EQ(chat(), ExitCode::kOk);
  ASSERT_EQ(asked.size(), 3U);
  EXPECT_NE(program.err.text.find("berth: the worker of demo ended"), std::string::npos);
  EXPECT_NE(program.err.text.find("berth: the prompt has 9 tokens"), std::string::npos);
  // What came stays; a question without any answer does not.
  EXPECT_EQ(messages(2),
            R"([{"role":"user","content":"one"},{"role":"assistant","content":"half"},)"
            R"({"role":"user","content":"three"}])");
}

TEST_F(ChatTest, DaemonThatComesBackIsFoundAgain) {
  typist.type("one");
  typist.type("two");
  typist.type("three");
  bool stopped = false;
  program.out.on_write = [&] {
    if (!stopped && program.out.text.find("re: one") != std::string::npos) {
      stopped = true;
      daemon.stop();
    }
  };
  program.err.on_write = [&] {
    if (program.err.text.find("cannot reach berthd") != std::string::npos) daemon.start();
  };
  EXPECT_EQ(chat(), ExitCode::kOk);
  EXPECT_NE(program.err.text.find("cannot reach berthd"), std::string::npos);
  EXPECT_NE(program.out.text.find("re: three"), std::string::npos) << program.err.text;
}

TEST_F(ChatTest, CommandsChangeTheConversation) {
  typist.type("one");
  typist.type("/clear");
  typist.type("/system Answer in verse.");
  typist.type("/set temperature 0.5");
  typist.type("/set top_k 3");
  typist.type("/set top_k default");
  typist.type("two");
  typist.type("/set temperature hot");
  typist.type("/stats");
  typist.type("/system \"\"");
  typist.type("//etc");
  EXPECT_EQ(chat(), ExitCode::kOk);
  ASSERT_EQ(asked.size(), 3U);
  EXPECT_EQ(messages(1),
            R"([{"role":"system","content":"Answer in verse."},{"role":"user","content":"two"}])");
  EXPECT_EQ(asked[1].sampling().temperature(), 0.5F);
  EXPECT_FALSE(asked[1].sampling().has_top_k());
  EXPECT_NE(program.err.text.find("temperature: expected a number from 0 to 100"),
            std::string::npos);
  EXPECT_NE(program.out.text.find("this chat:   2 answers, 24 tokens read, 68 written"),
            std::string::npos)
      << program.out.text;
  EXPECT_TRUE(messages(2).ends_with(R"({"role":"user","content":"/etc"}])"));
  EXPECT_EQ(messages(2).find("system"), std::string::npos);
}

TEST_F(ChatTest, UnknownCommandIsNotSent) {
  typist.type("/halp");
  typist.type("/help");
  typist.type("   ");
  EXPECT_EQ(chat(), ExitCode::kOk);
  EXPECT_TRUE(asked.empty());
  EXPECT_NE(program.out.text.find("there is no command /halp; did you mean /help?"),
            std::string::npos);
  EXPECT_NE(program.out.text.find("/save FILE"), std::string::npos);
}

TEST_F(ChatTest, SavesAndLoads) {
  const TemporaryDirectory directory;
  program.variables["HOME"] = directory.path();
  typist.type("one");
  typist.type("/save ~/my chat.json");
  typist.type("/clear");
  typist.type("/load ~/my chat.json");
  typist.type("two");
  typist.type("/load /nonexistent");
  typist.type("/save");
  EXPECT_EQ(chat(), ExitCode::kOk);
  EXPECT_TRUE(std::filesystem::exists(directory.path() + "/my chat.json"));
  EXPECT_NE(messages(1).find("re: one"), std::string::npos);
  EXPECT_NE(program.err.text.find("cannot open /nonexistent"), std::string::npos);
}

TEST_F(ChatTest, LeavesByExit) {
  typist.type("/exit");
  typist.type("never read");
  EXPECT_EQ(chat(), ExitCode::kOk);
  EXPECT_EQ(typist.left(), 1U);
}

TEST_F(ChatTest, LeavesByTwoInterruptsInARow) {
  typist.press_ctrl_c();
  typist.type("one");
  typist.press_ctrl_c();
  typist.press_ctrl_c();
  typist.type("never read");
  EXPECT_EQ(chat(), ExitCode::kOk);
  EXPECT_EQ(asked.size(), 1U);
  EXPECT_EQ(typist.left(), 1U);
}

TEST_F(ChatTest, TerminateLeaves) {
  answer = [this](grpc::ServerContext& call, const v1::GenerateRequest&,
                  grpc::ServerWriter<v1::GenerateEvent>&) {
    program.interrupts.interrupt(Caught::kTerminate);
    EXPECT_TRUE(test::wait_cancelled(call));
    return grpc::Status(grpc::Status::CANCELLED);
  };
  typist.type("one");
  typist.type("never read");
  EXPECT_EQ(chat(), ExitCode::kOk);
  EXPECT_EQ(typist.left(), 1U);
}

TEST_F(ChatTest, TextOfTheModelIsHarmless) {
  answer = [](grpc::ServerContext&, const v1::GenerateRequest&,
              grpc::ServerWriter<v1::GenerateEvent>& writer) {
    writer.Write(test::token("\x1b]0;owned\x07"));
    writer.Write(test::done());
    return grpc::Status::OK;
  };
  typist.type("one");
  EXPECT_EQ(chat(), ExitCode::kOk);
  EXPECT_EQ(program.out.text.find('\x1b'), std::string::npos);
  EXPECT_EQ(program.out.text.find('\x07'), std::string::npos);
}

TEST_F(ChatTest, AsksBeforeAPersonTypesWhetherTheModelCanChat) {
  daemon.list_models = [](grpc::ServerContext&, const v1::ListModelsRequest&,
                          v1::ListModelsResponse& reply) {
    *reply.add_models() = test::model("demo");
    *reply.add_models() = test::model("base", false);
    *reply.add_models() = test::model("broken");
    reply.mutable_models(2)->set_problem("the file is truncated");
    return grpc::Status::OK;
  };
  program.environment.input_terminal = true;
  program.variables["BERTH_ENDPOINT"] = daemon.endpoint();
  EXPECT_EQ(program.run({"chat", "dmeo"}), ExitCode::kNo);
  EXPECT_NE(program.err.text.find("nearest names: demo"), std::string::npos);
  EXPECT_EQ(program.run({"chat", "base"}), ExitCode::kNo);
  EXPECT_NE(program.err.text.find("cannot chat"), std::string::npos);
  EXPECT_EQ(program.run({"chat", "broken"}), ExitCode::kNo);
  EXPECT_NE(program.err.text.find("the file is truncated"), std::string::npos);
  EXPECT_EQ(program.run({"chat", "demo", "--json"}), ExitCode::kUsage);
  program.variables["BERTH_ENDPOINT"] = "unix:/nonexistent/d.sock";
  EXPECT_EQ(program.run({"chat", "demo"}), ExitCode::kUnreachable);
}

}  // namespace
}  // namespace berth::cli
