#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>

#include <boost/json.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/unit/cli/fake_daemon.h"
#include "tests/unit/cli/test_program.h"

namespace berth::cli {
namespace {

using test::detail;
using test::FakeDaemon;
using test::refuse;
using test::TemporaryDirectory;
using test::TestProgram;

class VerbsTest : public testing::Test {
 protected:
  VerbsTest() {
    program.variables["BERTH_ENDPOINT"] = daemon.endpoint();
    terminal.variables["BERTH_ENDPOINT"] = daemon.endpoint();
  }
  static std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

  FakeDaemon daemon;
  TestProgram program;
  TestProgram terminal{{.out = true, .err = true, .columns = 80}};
};

// --- models and ps

TEST_F(VerbsTest, ModelsShowsATable) {
  daemon.list_models = [](grpc::ServerContext&, const v1::ListModelsRequest&,
                          v1::ListModelsResponse& reply) {
    v1::Model& demo = *reply.add_models();
    demo = test::model("demo");
    demo.set_parameters(7'620'000'000);
    demo.set_file_bytes(std::uint64_t{4683} << 20U);
    demo.set_quantization("Q4_K");
    demo.set_context(32768);
    demo.set_state("ready");
    v1::Model& broken = *reply.add_models();
    broken = test::model("broken", false);
    broken.set_problem("the file is truncated\x1b[31m");
    broken.set_context(4096);  // what it would be served with
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"models"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text,
            "NAME        SIZE  PARAMS  QUANT  CONTEXT  CHAT  STATE   PROBLEM\n"
            "demo    4.57 GiB   7.62B  Q4_K     32768  yes   ready\n"
            "broken         -       -  -            -  no    broken  the file is truncated[31m\n");
  EXPECT_EQ(program.err.text, "");

  ASSERT_EQ(program.run({"models", "--json"}), ExitCode::kOk);
  const auto json = boost::json::parse(program.out.text);
  EXPECT_EQ(json.at("models").at(0).at("name").as_string(), "demo");
  EXPECT_EQ(json.at("models").at(0).at("parameters").as_int64(), 7'620'000'000);
  EXPECT_EQ(json.at("models").at(1).at("can_chat").as_bool(), false);

  ASSERT_EQ(program.run({"__models"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text, "demo\nbroken\n");
}

TEST_F(VerbsTest, T3_ModelsShowsWhichFailed) {
  daemon.list_models = [](grpc::ServerContext&, const v1::ListModelsRequest&,
                          v1::ListModelsResponse& reply) {
    v1::Model& model = *reply.add_models();
    model = test::model("zebra");
    model.set_state("failed");
    model.mutable_failure()->set_class_("permanent");
    model.mutable_failure()->set_reason("unknown model architecture: 'zebra'");
    model.mutable_failure()->set_since_unix_ms(1);
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"models"}), ExitCode::kOk);
  EXPECT_NE(program.out.text.find("failed"), std::string::npos) << program.out.text;
  EXPECT_NE(program.out.text.find("permanent: unknown model architecture: 'zebra' ("),
            std::string::npos)
      << program.out.text;
}

TEST_F(VerbsTest, T3_AFailureWithoutAReasonShowsItsExit) {
  daemon.list_models = [](grpc::ServerContext&, const v1::ListModelsRequest&,
                          v1::ListModelsResponse& reply) {
    for (const auto* const name : {"exits", "dies"}) {
      v1::Model& model = *reply.add_models();
      model = test::model(name);
      model.set_state("failed");
      model.mutable_failure()->set_class_("unclassified");
      model.mutable_failure()->set_since_unix_ms(1);
    }
    reply.mutable_models(0)->mutable_failure()->set_exit_code(7);
    reply.mutable_models(1)->mutable_failure()->set_signal("SIGSEGV");
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"models"}), ExitCode::kOk);
  for (const auto* const part : {"unclassified: exit 7 (", "unclassified: SIGSEGV ("}) {
    EXPECT_NE(program.out.text.find(part), std::string::npos) << program.out.text;
  }
}

TEST_F(VerbsTest, NoModelsIsSaidWithWhatToDo) {
  daemon.list_models = [](grpc::ServerContext&, const v1::ListModelsRequest&,
                          v1::ListModelsResponse&) { return grpc::Status::OK; };
  ASSERT_EQ(program.run({"models"}), ExitCode::kOk);
  EXPECT_NE(program.out.text.find("no models: put a *.gguf"), std::string::npos);
  ASSERT_EQ(program.run({"models", "--json"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text, "{\n  \"models\": []\n}\n");
}

TEST_F(VerbsTest, PsShowsMemoryStateAndIdleTime) {
  daemon.list_instances = [](grpc::ServerContext&, const v1::ListInstancesRequest&,
                             v1::ListInstancesResponse& reply) {
    v1::Instance& ready = *reply.add_instances();
    ready.set_model("demo");
    ready.set_state("ready");
    ready.set_pid(4711);
    ready.set_window(4096);
    ready.set_active(1);
    ready.set_waiting(2);
    ready.set_weights_bytes(std::uint64_t{1200} << 20U);
    ready.set_kv_bytes(std::uint64_t{500} << 20U);
    ready.set_working_bytes(std::uint64_t{100} << 20U);
    ready.set_resident_bytes(std::uint64_t{1900} << 20U);
    ready.set_ttl_ms(299'500);
    v1::Instance& loading = *reply.add_instances();
    loading.set_model("big");
    loading.set_state("loading");
    loading.mutable_loading()->set_fraction(0.437F);
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"ps"}), ExitCode::kOk);
  EXPECT_NE(program.out.text.find("1.76 GiB (1.2 + 0.5 + 0.1)"), std::string::npos)
      << program.out.text;
  EXPECT_NE(program.out.text.find("loading 43 %"), std::string::npos);
  EXPECT_NE(program.out.text.find("5 min"), std::string::npos);
  EXPECT_NE(program.out.text.find("4711"), std::string::npos);

  ASSERT_EQ(terminal.run({"ps"}), ExitCode::kOk);
  EXPECT_EQ(terminal.out.text.find("(1.2"), std::string::npos) << "80 columns are too few for it";
  std::istringstream lines(terminal.out.text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST_F(VerbsTest, PsWithoutInstancesSaysSo) {
  daemon.list_instances = [](grpc::ServerContext&, const v1::ListInstancesRequest&,
                             v1::ListInstancesResponse&) { return grpc::Status::OK; };
  ASSERT_EQ(program.run({"ps"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text, "no model is loaded\n");
}

TEST_F(VerbsTest, ColoursAreForTerminalsWithoutNoColor) {
  daemon.list_instances = [](grpc::ServerContext&, const v1::ListInstancesRequest&,
                             v1::ListInstancesResponse& reply) {
    reply.add_instances()->set_state("ready");
    return grpc::Status::OK;
  };
  ASSERT_EQ(terminal.run({"ps"}), ExitCode::kOk);
  EXPECT_EQ(terminal.out.text.find('\x1b'), std::string::npos);
  terminal.variables.erase("NO_COLOR");
  ASSERT_EQ(terminal.run({"ps"}), ExitCode::kOk);
  EXPECT_NE(terminal.out.text.find("\x1b[32mready"), std::string::npos);
  ASSERT_EQ(terminal.run({"ps", "--json"}), ExitCode::kOk);
  EXPECT_EQ(terminal.out.text.find('\x1b'), std::string::npos);
  program.variables.erase("NO_COLOR");
  ASSERT_EQ(program.run({"ps"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text.find('\x1b'), std::string::npos);
}

// --- refusals and the unreachable

TEST_F(VerbsTest, RefusalIsExitOneWithTheReason) {
  daemon.list_models = [](grpc::ServerContext& context, const v1::ListModelsRequest&,
                          v1::ListModelsResponse&) {
    return refuse(context, grpc::StatusCode::PERMISSION_DENIED,
                  detail("permission_denied", "only admins may do this"));
  };
  EXPECT_EQ(program.run({"models"}), ExitCode::kNo);
  EXPECT_EQ(first_line(program.err.text), "berth: only admins may do this");
  EXPECT_EQ(program.out.text, "");
  EXPECT_EQ(program.run({"models", "--json"}), ExitCode::kNo);
  const auto json = boost::json::parse(program.out.text);
  EXPECT_EQ(json.at("error").at("reason").as_string(), "permission_denied");
  EXPECT_EQ(json.at("error").at("message").as_string(), "only admins may do this");
}

TEST_F(VerbsTest, RefusalWithoutATrailerIsStillOne) {
  daemon.list_models = [](grpc::ServerContext&, const v1::ListModelsRequest&,
                          v1::ListModelsResponse&) {
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "");
  };
  EXPECT_EQ(program.run({"models"}), ExitCode::kNo);
  EXPECT_EQ(first_line(program.err.text), "berth: the daemon gave no reason");
}

TEST_F(VerbsTest, UnknownCallSaysThatTheVersionsDiffer) {
  EXPECT_EQ(program.run({"ps"}), ExitCode::kNo);
  EXPECT_NE(program.err.text.find("may be of another version"), std::string::npos);
}

TEST_F(VerbsTest, MissingSocketIsExitThreeAtOnce) {
  program.variables["BERTH_ENDPOINT"] = "unix:/nonexistent/d.sock";
  for (const char* verb : {"models", "ps"}) {
    EXPECT_EQ(program.run({verb}), ExitCode::kUnreachable);
    EXPECT_EQ(first_line(program.err.text),
              "berth: cannot reach berthd at unix:/nonexistent/d.sock: there is no socket "
              "/nonexistent/d.sock");
    EXPECT_NE(program.err.text.find("is berthd running?"), std::string::npos);
    EXPECT_NE(program.err.text.find("BERTH_ENDPOINT"), std::string::npos);
    EXPECT_EQ(program.out.text, "");
  }
}

TEST_F(VerbsTest, LeftoverSocketIsExitThreeAtOnce) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/old.sock";
  {
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  program.variables["BERTH_ENDPOINT"] = "unix:" + path;
  EXPECT_EQ(program.run({"ps"}), ExitCode::kUnreachable);
  EXPECT_NE(program.err.text.find("nobody listens on the socket"), std::string::npos);
  std::ofstream(directory.path() + "/file") << "x";
  program.variables["BERTH_ENDPOINT"] = "unix:" + directory.path() + "/file";
  EXPECT_EQ(program.run({"ps"}), ExitCode::kUnreachable);
  EXPECT_NE(program.err.text.find("is not a socket"), std::string::npos);
}

TEST_F(VerbsTest, ListenerThatNeverAnswersIsExitThree) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/mute.sock";
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(fd.get(), 8), 0);
  program.variables["BERTH_ENDPOINT"] = "unix:" + path;
  EXPECT_EQ(program.run({"ps"}), ExitCode::kUnreachable);
  EXPECT_NE(program.err.text.find("no answer within"), std::string::npos) << program.err.text;
}

TEST_F(VerbsTest, RefusedPortIsExitThree) {
  program.variables["BERTH_ENDPOINT"] = "127.0.0.1:1";
  EXPECT_EQ(program.run({"ps"}), ExitCode::kUnreachable);
  EXPECT_EQ(first_line(program.err.text),
            "berth: cannot reach berthd at 127.0.0.1:1: nobody listens there (connection refused)");
}

// --- load and unload

v1::LoadEvent load_progress(std::string phase, float fraction) {
  v1::LoadEvent event;
  event.mutable_loading()->set_phase(std::move(phase));
  event.mutable_loading()->set_fraction(fraction);
  return event;
}

TEST_F(VerbsTest, LoadShowsProgressAndEndsReady) {
  daemon.load = [](grpc::ServerContext&, const v1::LoadModelRequest& request,
                   grpc::ServerWriter<v1::LoadEvent>& writer) {
    EXPECT_EQ(request.model(), "demo");
    EXPECT_FALSE(request.no_wait());
    v1::LoadEvent event;
    event.mutable_queued()->set_position(3);
    writer.Write(event);
    writer.Write(load_progress("weights", 0.5F));
    event.mutable_ready()->set_pid(4711);
    event.mutable_ready()->set_window(4096);
    writer.Write(event);
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"load", "demo"}), ExitCode::kOk) << program.err.text;
  EXPECT_EQ(program.out.text.find("demo is ready (pid 4711, context 4096), took "), 0U);
  EXPECT_EQ(program.err.text, "");

  ASSERT_EQ(terminal.run({"load", "demo"}), ExitCode::kOk);
  EXPECT_NE(terminal.err.text.find("demo: waiting, 2 ahead"), std::string::npos);
  EXPECT_NE(terminal.err.text.find("demo: loading (weights) [####"), std::string::npos);
  EXPECT_TRUE(terminal.err.text.ends_with("\r\x1b[K"));

  ASSERT_EQ(program.run({"load", "demo", "-v"}), ExitCode::kOk);
  EXPECT_EQ(program.err.text, "demo: waiting, 2 ahead\ndemo: loading (weights) 50 %\n");

  ASSERT_EQ(program.run({"load", "demo", "--json"}), ExitCode::kOk);
  std::istringstream lines(program.out.text);
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(boost::json::parse(all[1]).at("loading").at("phase").as_string(), "weights");
  EXPECT_EQ(boost::json::parse(all[2]).at("ready").at("pid").as_int64(), 4711);
}

TEST_F(VerbsTest, LoadThatFailsIsExitOneWithTheEvidence) {
  daemon.load = [](grpc::ServerContext& context, const v1::LoadModelRequest&,
                   grpc::ServerWriter<v1::LoadEvent>& writer) {
    v1::ErrorDetail error = detail("load_failed", "model demo could not be loaded");
    error.mutable_failure()->set_class_("permanent");
    error.mutable_failure()->set_reason("unknown model architecture: 'foo'");
    error.mutable_failure()->set_exit_code(1);
    error.mutable_failure()->set_instance_id("0190-instance");
    error.mutable_failure()->add_log_tail("error loading model");
    v1::LoadEvent event;
    *event.mutable_error() = error;
    writer.Write(event);
    return refuse(context, grpc::StatusCode::UNAVAILABLE, error);
  };
  EXPECT_EQ(program.run({"load", "demo"}), ExitCode::kNo);
  EXPECT_EQ(program.err.text,
            "berth: model demo could not be loaded\n"
            "  failure: permanent, exit 1\n"
            "  reason: unknown model architecture: 'foo'\n"
            "  last lines of its log:\n"
            "    | error loading model\n"
            "  'berth why demo' explains it, 'berth logs demo' shows the whole log\n");
  // The stream has it already: not a second time.
  EXPECT_EQ(program.run({"load", "demo", "--json"}), ExitCode::kNo);
  EXPECT_EQ(std::count(program.out.text.begin(), program.out.text.end(), '\n'), 1);
  EXPECT_EQ(boost::json::parse(program.out.text).at("error").at("reason").as_string(),
            "load_failed");
}

TEST_F(VerbsTest, UnknownModelHasNearestNames) {
  daemon.load = [](grpc::ServerContext& context, const v1::LoadModelRequest&,
                   grpc::ServerWriter<v1::LoadEvent>&) {
    v1::ErrorDetail error = detail("unknown_model", "there is no model 'dmeo'");
    error.add_suggestions("demo");
    return refuse(context, grpc::StatusCode::NOT_FOUND, error);
  };
  EXPECT_EQ(program.run({"load", "dmeo"}), ExitCode::kNo);
  EXPECT_EQ(program.err.text,
            "berth: there is no model 'dmeo'\n  nearest names: demo\n"
            "  'berth models' lists what there is\n");
}

TEST_F(VerbsTest, NoWaitReturnsWhenTheLoadHasBegun) {
  daemon.load = [](grpc::ServerContext&, const v1::LoadModelRequest& request,
                   grpc::ServerWriter<v1::LoadEvent>& writer) {
    EXPECT_TRUE(request.no_wait());
    v1::LoadEvent event;
    event.mutable_started()->set_state("loading");
    event.mutable_started()->set_pid(7);
    writer.Write(event);
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"load", "demo", "--no-wait"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text, "the load of demo has begun (pid 7)\n");
}

TEST_F(VerbsTest, InterruptedLoadSaysThatItGoesOn) {
  daemon.load = [&](grpc::ServerContext& context, const v1::LoadModelRequest&,
                    grpc::ServerWriter<v1::LoadEvent>& writer) {
    writer.Write(load_progress("weights", 0.1F));
    program.interrupts.interrupt();
    EXPECT_TRUE(test::wait_cancelled(context));
    return grpc::Status::CANCELLED;
  };
  EXPECT_EQ(program.run({"load", "demo"}), ExitCode::kInterrupted);
  EXPECT_NE(program.err.text.find("the load of demo goes on"), std::string::npos);
  EXPECT_NE(program.err.text.find("berth unload demo"), std::string::npos);
  EXPECT_EQ(program.interrupts.taken, Interrupts::Again::kEndsProgram);
}

TEST_F(VerbsTest, LoadStreamWithoutAnEndIsNoSuccess) {
  daemon.load = [](grpc::ServerContext&, const v1::LoadModelRequest&,
                   grpc::ServerWriter<v1::LoadEvent>&) { return grpc::Status::OK; };
  EXPECT_EQ(program.run({"load", "demo"}), ExitCode::kNo);
  EXPECT_NE(program.err.text.find("without saying whether demo is ready"), std::string::npos);
}

TEST_F(VerbsTest, UnloadTellsHowTheProcessEnded) {
  daemon.unload = [](grpc::ServerContext& context, const v1::UnloadModelRequest& request,
                     v1::UnloadModelResponse& reply) {
    if (!request.force()) {
      return refuse(context, grpc::StatusCode::FAILED_PRECONDITION,
                    detail("conflict", "1 request runs on demo"));
    }
    reply.set_exit("exit 0");
    reply.set_took_ms(120);
    return grpc::Status::OK;
  };
  EXPECT_EQ(program.run({"unload", "demo"}), ExitCode::kNo);
  EXPECT_EQ(program.err.text,
            "berth: 1 request runs on demo\n"
            "  --force unloads it also when requests run on it; they fail then\n");
  EXPECT_EQ(program.run({"unload", "demo", "--force"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text, "demo is unloaded (exit 0), took 120 ms\n");
  EXPECT_EQ(program.run({"unload", "demo", "--force", "--json"}), ExitCode::kOk);
  EXPECT_EQ(boost::json::parse(program.out.text).at("took_ms").as_int64(), 120);
}

// --- complete

TEST_F(VerbsTest, CompleteStreamsPlainText) {
  v1::GenerateRequest asked;
  daemon.generate = [&](grpc::ServerContext&, const v1::GenerateRequest& request,
                        grpc::ServerWriter<v1::GenerateEvent>& writer) {
    asked = request;
    writer.Write(test::loading("weights", 0.5F));
    writer.Write(test::token("Hello"));
    writer.Write(test::token(" wörld\x1b[31m"));
    writer.Write(test::done());
    return grpc::Status::OK;
  };
  ASSERT_EQ(
      program.run({"complete", "demo", "Say", "hi", "--max-tokens", "5", "--temperature", "0",
                   "--top-k", "1", "--top-p", "0.5", "--seed", "7", "--stop", "X", "--stop", "Y"}),
      ExitCode::kOk)
      << program.err.text;
  EXPECT_EQ(program.out.text, "Hello wörld\x1b[31m\n") << "no terminal: as it is";
  EXPECT_EQ(program.err.text, "");
  EXPECT_EQ(asked.prompt(), "Say hi");
  EXPECT_EQ(asked.max_tokens(), 5U);
  EXPECT_EQ(asked.sampling().temperature(), 0);
  EXPECT_TRUE(asked.sampling().has_temperature());
  EXPECT_EQ(asked.sampling().top_k(), 1U);
  EXPECT_EQ(asked.sampling().top_p(), 0.5F);
  EXPECT_EQ(asked.sampling().seed(), 7U);
  ASSERT_EQ(asked.stop_size(), 2);
  EXPECT_EQ(asked.stop(1), "Y");

  ASSERT_EQ(terminal.run({"complete", "demo", "Say hi"}), ExitCode::kOk);
  EXPECT_EQ(terminal.out.text, "Hello wörld\xE2\x90\x9B[31m\n") << "a terminal obeys nothing of it";
  EXPECT_NE(terminal.err.text.find("demo: loading (weights)"), std::string::npos);
  EXPECT_FALSE(asked.has_max_tokens());
  EXPECT_FALSE(asked.sampling().has_seed());

  ASSERT_EQ(program.run({"complete", "demo", "Say hi", "-v"}), ExitCode::kOk);
  EXPECT_NE(program.err.text.find("12 tokens read, 34 written at 34.0/s"), std::string::npos)
      << program.err.text;
}

TEST_F(VerbsTest, CompleteWithJsonPrintsEveryEvent) {
  daemon.generate = [&](grpc::ServerContext&, const v1::GenerateRequest&,
                        grpc::ServerWriter<v1::GenerateEvent>& writer) {
    writer.Write(test::token("a"));
    writer.Write(test::done());
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"complete", "demo", "x", "--json"}), ExitCode::kOk);
  std::istringstream lines(program.out.text);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line,
            R"({"token":{"text":"a","ids":[],"logprobs":[],"reasoning":"","tool_calls":[]}})");
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(boost::json::parse(line).at("done").at("finish_reason").as_string(), "stop");
  EXPECT_FALSE(std::getline(lines, line));
}

TEST_F(VerbsTest, PromptComesFromStandardInput) {
  std::string prompt;
  daemon.generate = [&](grpc::ServerContext&, const v1::GenerateRequest& request,
                        grpc::ServerWriter<v1::GenerateEvent>& writer) {
    prompt = request.has_chat() ? request.chat().messages_json() : request.prompt();
    writer.Write(test::done());
    return grpc::Status::OK;
  };
  program.set_input("from a pipe\n");
  ASSERT_EQ(program.run({"complete", "demo", "-"}), ExitCode::kOk) << program.err.text;
  EXPECT_EQ(prompt, "from a pipe\n");
  program.set_input("the text");
  ASSERT_EQ(program.run({"complete", "demo", "Summarise:", "-"}), ExitCode::kOk);
  EXPECT_EQ(prompt, "Summarise:\nthe text");
  program.set_input("a question");
  ASSERT_EQ(program.run({"chat", "demo"}), ExitCode::kOk);
  EXPECT_EQ(prompt, R"([{"role":"user","content":"a question"}])");
  ASSERT_EQ(program.run({"chat", "demo", "--system", "Be brief.", "hi"}), ExitCode::kOk);
  EXPECT_EQ(prompt, R"([{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}])");
}

TEST_F(VerbsTest, PromptThatIsNoneIsWrongUse) {
  program.set_input("ab\xFF");
  EXPECT_EQ(program.run({"complete", "demo", "-"}), ExitCode::kUsage);
  EXPECT_EQ(first_line(program.err.text),
            "berth: the prompt is not UTF-8: byte 2 is 0xff; convert it first, e.g. with iconv");
  program.set_input("");
  EXPECT_EQ(program.run({"chat", "demo"}), ExitCode::kUsage);
  EXPECT_EQ(first_line(program.err.text), "berth: the prompt is empty");
}

TEST_F(VerbsTest, AnswerThatWasCutIsSaid) {
  daemon.generate = [&](grpc::ServerContext&, const v1::GenerateRequest&,
                        grpc::ServerWriter<v1::GenerateEvent>& writer) {
    writer.Write(test::token("a\n"));
    writer.Write(test::done("length"));
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"complete", "demo", "x"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text, "a\n");
  EXPECT_EQ(program.err.text, "berth: the answer was cut: the context is full\n");
  ASSERT_EQ(program.run({"complete", "demo", "x", "--max-tokens", "1"}), ExitCode::kOk);
  EXPECT_EQ(program.err.text, "") << "that is what was asked for";
}

TEST_F(VerbsTest, WorkerThatDiesIsExitOneBehindWhatCame) {
  daemon.generate = [&](grpc::ServerContext& context, const v1::GenerateRequest&,
                        grpc::ServerWriter<v1::GenerateEvent>& writer) {
    writer.Write(test::token("half an ans"));
    v1::ErrorDetail error = detail("worker_died", "the worker of demo ended");
    error.mutable_failure()->set_class_("crash");
    error.mutable_failure()->set_signal("SIGKILL");
    v1::GenerateEvent event;
    *event.mutable_error() = error;
    writer.Write(event);
    return refuse(context, grpc::StatusCode::INTERNAL, error);
  };
  EXPECT_EQ(program.run({"complete", "demo", "x"}), ExitCode::kNo);
  EXPECT_EQ(program.out.text, "half an ans\n");
  EXPECT_EQ(first_line(program.err.text), "berth: the worker of demo ended");
  EXPECT_NE(program.err.text.find("ended by SIGKILL"), std::string::npos);
}

TEST_F(VerbsTest, DaemonThatDiesInTheStreamIsExitThree) {
  std::thread killer;
  daemon.generate = [&](grpc::ServerContext& context, const v1::GenerateRequest&,
                        grpc::ServerWriter<v1::GenerateEvent>& writer) {
    writer.Write(test::token("half"));
    killer = std::thread([&] { daemon.stop(); });
    EXPECT_TRUE(test::wait_cancelled(context));
    return grpc::Status::CANCELLED;
  };
  EXPECT_EQ(program.run({"complete", "demo", "x"}), ExitCode::kUnreachable);
  killer.join();
  EXPECT_EQ(program.out.text, "half\n");
  EXPECT_EQ(first_line(program.err.text).find("berth: cannot reach berthd at "), 0U)
      << program.err.text;
}

TEST_F(VerbsTest, StreamWithoutAnEndIsNoSuccess) {
  daemon.generate = [](grpc::ServerContext&, const v1::GenerateRequest&,
                       grpc::ServerWriter<v1::GenerateEvent>& writer) {
    writer.Write(test::token("half"));
    return grpc::Status::OK;
  };
  EXPECT_EQ(program.run({"complete", "demo", "x"}), ExitCode::kNo);
  EXPECT_NE(program.err.text.find("ended the stream without an answer"), std::string::npos);
}

TEST_F(VerbsTest, InterruptCancelsTheWork) {
  bool cancelled = false;
  daemon.generate = [&](grpc::ServerContext& context, const v1::GenerateRequest&,
                        grpc::ServerWriter<v1::GenerateEvent>& writer) {
    writer.Write(test::token("half"));
    program.interrupts.interrupt();
    cancelled = test::wait_cancelled(context);
    return grpc::Status::CANCELLED;
  };
  EXPECT_EQ(program.run({"complete", "demo", "x"}), ExitCode::kInterrupted);
  daemon.stop();  // waits for the script
  EXPECT_TRUE(cancelled);
}

TEST_F(VerbsTest, FullDiskUnderTheAnswerIsExitOneAndCancels) {
  bool cancelled = false;
  daemon.generate = [&](grpc::ServerContext& context, const v1::GenerateRequest&,
                        grpc::ServerWriter<v1::GenerateEvent>& writer) {
    writer.Write(test::token("half"));
    cancelled = test::wait_cancelled(context);
    return grpc::Status::CANCELLED;
  };
  program.out.on_write = [&] { program.out.failure = "No space left on device"; };
  EXPECT_EQ(program.run({"complete", "demo", "x"}), ExitCode::kNo);
  EXPECT_EQ(first_line(program.err.text),
            "berth: cannot write the answer: No space left on device");
  daemon.stop();
  EXPECT_TRUE(cancelled);
}

// --- logs and events

TEST_F(VerbsTest, LogsPassBytesOn) {
  v1::ReadLogRequest asked;
  daemon.read_log = [&](grpc::ServerContext&, const v1::ReadLogRequest& request,
                        grpc::ServerWriter<v1::LogChunk>& writer) {
    asked = request;
    for (const char* part : {"one\ntw", "o \x1b[31m\xFF", "\nthree"}) {
      v1::LogChunk chunk;
      chunk.set_data(part);
      writer.Write(chunk);
    }
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"logs", "demo"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text, "one\ntwo \x1b[31m\xFF\nthree");
  EXPECT_FALSE(asked.has_tail_lines());
  EXPECT_FALSE(asked.follow());
  ASSERT_EQ(program.run({"logs", "demo", "-f", "-n", "0"}), ExitCode::kOk);
  EXPECT_TRUE(asked.follow());
  EXPECT_EQ(asked.tail_lines(), 0U);
  EXPECT_TRUE(asked.has_tail_lines());

  ASSERT_EQ(terminal.run({"logs", "demo"}), ExitCode::kOk);
  EXPECT_EQ(terminal.out.text, "one\ntwo \xE2\x90\x9B[31m\xEF\xBF\xBD\nthree");
  ASSERT_EQ(program.run({"logs", "demo", "--json"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text,
            "{\"data\":\"one\"}\n{\"data\":\"two \\u001b[31m\xEF\xBF\xBD\"}\n"
            "{\"data\":\"three\"}\n");
}

TEST_F(VerbsTest, EventsAreLinesAsTheDaemonLogsThem) {
  v1::WatchEventsRequest asked;
  daemon.watch_events = [&](grpc::ServerContext&, const v1::WatchEventsRequest& request,
                            grpc::ServerWriter<v1::Event>& writer) {
    asked = request;
    v1::Event event;
    event.set_sequence(9);
    event.set_time_unix_ms(1'800'000'000'123);
    event.set_name("load.failed");
    event.set_level("error");
    const auto text = [&](const char* name, const char* value) {
      v1::EventField& field = *event.add_fields();
      field.set_name(name);
      field.set_text(value);
    };
    text("model", "demo");
    text("reason", "two words");
    v1::EventField& took = *event.add_fields();
    took.set_name("took_ms");
    took.set_integer(12);
    writer.Write(event);
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"events", "--prefix", "load.", "--since", "10m"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text,
            "2027-01-15T08:00:00.123Z error load.failed model=demo reason=\"two words\" "
            "took_ms=12\n");
  EXPECT_EQ(asked.prefix(), "load.");
  EXPECT_EQ(asked.since_unix_ms(), 1'800'000'000'000 - 600'000);
  EXPECT_FALSE(asked.follow());
  ASSERT_EQ(program.run({"events", "-f", "--since", "2026-01-02T03:04:05Z", "--json"}),
            ExitCode::kOk);
  EXPECT_TRUE(asked.follow());
  EXPECT_EQ(asked.since_unix_ms(), 1'767'323'045'000);
  const auto json = boost::json::parse(program.out.text);
  EXPECT_EQ(json.at("fields").at(2).at("integer").as_int64(), 12);
  EXPECT_EQ(json.at("sequence").as_int64(), 9);

  EXPECT_EQ(program.run({"events", "--since", "yesterday"}), ExitCode::kUsage);
  EXPECT_EQ(first_line(program.err.text).find("berth: --since: 'yesterday' is neither"), 0U);
}

TEST_F(VerbsTest, EventsThatWereNotReadInTimeAreAskedForAgain) {
  std::vector<std::uint64_t> asked;
  daemon.watch_events = [&](grpc::ServerContext& context, const v1::WatchEventsRequest& request,
                            grpc::ServerWriter<v1::Event>& writer) {
    asked.push_back(request.after());
    v1::Event event;
    event.set_sequence(request.after() + 9);
    event.set_name("server.stopping");
    event.set_level("info");
    if (asked.size() < 3) writer.Write(event);
    event.set_sequence(0);
    event.set_name("events.gap");
    if (asked.size() < 3) writer.Write(event);
    return refuse(context, grpc::StatusCode::RESOURCE_EXHAUSTED, detail("queue_full", "Too fast."));
  };
  EXPECT_EQ(program.run({"events"}), ExitCode::kNo);
  EXPECT_EQ(asked.size(), 1U) << "not followed";
  asked.clear();
  EXPECT_EQ(program.run({"events", "-f"}), ExitCode::kNo) << "nothing came any more";
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{0, 9, 18}));
}

// --- config, doctor, version

TEST_F(VerbsTest, ConfigCheckNeedsNoDaemon) {
  const TemporaryDirectory directory;
  program.variables["BERTH_ENDPOINT"] = "not even an endpoint";
  const std::string good = directory.path() + "/good.toml";
  std::ofstream(good) << "[server]\ndrain_timeout = \"20s\"\n";
  EXPECT_EQ(program.run({"config", "check", good}), ExitCode::kOk) << program.err.text;
  EXPECT_EQ(program.out.text, good + " is valid\n");

  const std::string bad = directory.path() + "/bad.toml";
  std::ofstream(bad) << "[server]\ndrain_timeot = \"20s\"\n";
  EXPECT_EQ(program.run({"config", "check", bad}), ExitCode::kNo);
  EXPECT_EQ(first_line(program.err.text), "berth: " + bad + " is not valid: 1 problem");
  EXPECT_NE(program.err.text.find("\n" + bad + ":2: "), std::string::npos) << program.err.text;
  EXPECT_NE(program.err.text.find("drain_timeout"), std::string::npos);
  EXPECT_EQ(program.run({"config", "check", bad, "--json"}), ExitCode::kNo);
  const auto json = boost::json::parse(program.out.text);
  EXPECT_EQ(json.at("valid").as_bool(), false);
  EXPECT_EQ(json.at("problems").at(0).at("line").as_int64(), 2);

  EXPECT_EQ(program.run({"config", "check", directory.path() + "/none.toml"}), ExitCode::kNo);
  EXPECT_NE(program.err.text.find("none.toml"), std::string::npos);
}

TEST_F(VerbsTest, ConfigCheckWarnsOfFilesThatAreNotThere) {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/berth.toml";
  std::ofstream(file) << "[models]\ndirs = []\n[auth]\nkeys_file = \"keys\"\n";
  EXPECT_EQ(program.run({"config", "check", file}), ExitCode::kOk);
  EXPECT_EQ(program.err.text, file + ": warning: auth.keys_file names " + directory.path() +
                                  "/keys, which is not there.\n");
  EXPECT_EQ(program.out.text, file + " is valid\n");
  EXPECT_EQ(program.run({"config", "check", file, "--json"}), ExitCode::kOk);
  EXPECT_EQ(boost::json::parse(program.out.text).at("warnings").as_array().size(), 1U);
}

TEST_F(VerbsTest, ConfigShowsTheDaemonsOrAFiles) {
  daemon.config = [](grpc::ServerContext&, const v1::GetConfigRequest&,
                     v1::EffectiveConfig& reply) {
    v1::Setting& setting = *reply.add_settings();
    setting.set_key("server.drain_timeout");
    setting.set_value("\"30s\"");
    setting.set_source("default");
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"config", "show"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text,
            "SETTING               VALUE  FROM\nserver.drain_timeout  \"30s\"  default\n");
  ASSERT_EQ(program.run({"config", "show", "--json"}), ExitCode::kOk);
  EXPECT_EQ(boost::json::parse(program.out.text).at("settings").at(0).at("source").as_string(),
            "default");

  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/good.toml";
  std::ofstream(file) << "[server]\ndrain_timeout = \"20s\"\n";
  program.variables["BERTH_ENDPOINT"] = "unix:/nonexistent/d.sock";
  ASSERT_EQ(program.run({"config", "show", file}), ExitCode::kOk) << program.err.text;
  EXPECT_NE(program.out.text.find(file + ":2"), std::string::npos);
  EXPECT_EQ(program.run({"config", "show"}), ExitCode::kUnreachable);
  EXPECT_NE(program.err.text.find("--offline"), std::string::npos);
}

TEST_F(VerbsTest, VersionWorksWithAndWithoutADaemon) {
  daemon.server_info = [](grpc::ServerContext&, const v1::GetServerInfoRequest&,
                          v1::ServerInfo& reply) {
    reply.set_version("9.9.9");
    reply.set_build_id("abc");
    reply.set_pid(4711);
    reply.set_state("ready");
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"version"}), ExitCode::kOk);
  EXPECT_NE(program.out.text.find("berthd 9.9.9 (abc) at unix:"), std::string::npos);
  ASSERT_EQ(program.run({"version", "--json"}), ExitCode::kOk);
  EXPECT_EQ(boost::json::parse(program.out.text).at("server").at("pid").as_int64(), 4711);
  program.variables["BERTH_ENDPOINT"] = "unix:/nonexistent/d.sock";
  ASSERT_EQ(program.run({"version"}), ExitCode::kOk);
  EXPECT_NE(program.out.text.find("berthd not reachable"), std::string::npos);
  ASSERT_EQ(program.run({"version", "--json"}), ExitCode::kOk);
  EXPECT_TRUE(boost::json::parse(program.out.text).at("server").is_null());
}

TEST_F(VerbsTest, DoctorLooksAtTheDaemonsDirectories) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() + "/open");
  std::filesystem::permissions(directory.path() + "/open", std::filesystem::perms::all);
  daemon.server_info = [&](grpc::ServerContext&, const v1::GetServerInfoRequest&,
                           v1::ServerInfo& reply) {
    reply.set_version("0.0.1");
    reply.set_state("ready");
    reply.set_state_dir(directory.path());
    reply.set_log_dir(directory.path() + "/open");
    reply.add_degraded("no memory cgroup");
    return grpc::Status::OK;
  };
  EXPECT_EQ(program.run({"doctor"}), ExitCode::kNo);
  for (const char* part :
       {"warning  daemon", "install the same version of both", "no memory cgroup", "state_dir",
        "disk of log_dir", "everybody may write there", "kernel", "landlock", "open files",
        "processors", "memory", "clock", "devices"}) {
    EXPECT_NE(program.out.text.find(part), std::string::npos) << part << "\n" << program.out.text;
  }
  EXPECT_EQ(program.run({"doctor", "--json"}), ExitCode::kNo);
  const auto json = boost::json::parse(program.out.text);
  EXPECT_EQ(json.at("checks").at(0).at("what").as_string(), "daemon");
  EXPECT_EQ(json.at("checks").at(0).at("finding").as_string(), "warning");
}

TEST_F(VerbsTest, DoctorWorksWithoutADaemon) {
  program.variables["BERTH_ENDPOINT"] = "unix:/nonexistent/d.sock";
  EXPECT_EQ(program.run({"doctor"}), ExitCode::kNo);
  EXPECT_NE(program.out.text.find("error    daemon"), std::string::npos) << program.out.text;
  program.variables["BERTH_ENDPOINT"] = "nonsense";
  EXPECT_EQ(program.run({"doctor"}), ExitCode::kNo);
  EXPECT_NE(program.out.text.find("error    endpoint"), std::string::npos) << program.out.text;
}

}  // namespace
}  // namespace berth::cli
