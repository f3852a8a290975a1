#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdint>
#include <sstream>
#include <string>

#include "tests/unit/cli/fake_daemon.h"
#include "tests/unit/cli/test_program.h"

namespace berth::cli {
namespace {

using test::detail;
using test::FakeDaemon;
using test::refuse;
using test::TestProgram;

constexpr std::int64_t kNow = 1'800'000'000'000;
constexpr std::int64_t kMinute = 60'000;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

v1::FailureRecord standing(const std::string& model) {
  v1::FailureRecord record;
  record.set_id("0190-record");
  record.set_model(model);
  record.set_class_("permanent");
  record.set_meaning("The file cannot be loaded by this version.");
  record.set_reason("unknown model architecture: 'x'");
  record.set_exit_code(1);
  record.set_instance_id("0190-instance");
  record.set_started_unix_ms(kNow - 3 * kMinute - 250);
  record.set_ended_unix_ms(kNow - 3 * kMinute);
  record.set_way_out("Another file lifts this.");
  record.set_outlives_restart(true);
  return record;
}

v1::FailureRecord lifted(const std::string& model) {
  v1::FailureRecord record = standing(model);
  record.set_id("0190-older");
  record.set_class_("unclassified");
  record.clear_reason();
  record.clear_exit_code();
  record.set_signal("SIGSEGV");
  record.set_ended_unix_ms(kNow - 120 * kMinute);
  record.clear_way_out();
  record.mutable_lifted()->set_when_unix_ms(kNow - 60 * kMinute);
  record.mutable_lifted()->set_cause("provenance");
  record.mutable_lifted()->set_field("window");
  record.mutable_lifted()->set_text("the served window moved: 4096 -> 8192");
  return record;
}

class FailuresTest : public testing::Test {
 protected:
  FailuresTest() { program.variables["BERTH_ENDPOINT"] = daemon.endpoint(); }

  FakeDaemon daemon;
  TestProgram program;
};

TEST_F(FailuresTest, L18_TheTableShowsWhatStands) {
  daemon.list_failures = [](grpc::ServerContext&, const v1::ListFailuresRequest& request,
                            v1::ListFailuresResponse& reply) {
    EXPECT_EQ(request.model(), "");
    EXPECT_FALSE(request.history());
    EXPECT_EQ(request.limit(), 0U);
    *reply.add_failures() = standing("broken");
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"failures"}), ExitCode::kOk) << program.err.text;
  EXPECT_EQ(program.out.text,
            "MODEL   CLASS      SINCE      REASON\n"
            "broken  permanent  3 min ago  exit 1: unknown model architecture: 'x'\n");
  EXPECT_EQ(program.err.text, "");
}

TEST_F(FailuresTest, L23_AllTellsWhatLiftedThem) {
  daemon.list_failures = [](grpc::ServerContext&, const v1::ListFailuresRequest& request,
                            v1::ListFailuresResponse& reply) {
    EXPECT_EQ(request.model(), "broken");
    EXPECT_TRUE(request.history());
    EXPECT_EQ(request.limit(), 2U);
    *reply.add_failures() = standing("broken");
    *reply.add_failures() = lifted("broken");
    reply.set_more(true);
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"failures", "broken", "--all", "--limit", "2"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text,
            "MODEL   CLASS         SINCE      STATE   REASON\n"
            "broken  permanent     3 min ago  stands  exit 1: unknown model architecture: 'x'\n"
            "broken  unclassified  2 h ago    lifted  SIGSEGV (lifted 1 h ago: the served window "
            "moved: 4096 -> 8192)\n");
  EXPECT_NE(program.err.text.find("--limit"), std::string::npos);

  ASSERT_EQ(program.run({"failures", "broken", "--all", "--limit", "2", "--json"}), ExitCode::kOk);
  const auto json = boost::json::parse(program.out.text);
  EXPECT_EQ(json.at("failures").at(0).at("class").as_string(), "permanent");
  EXPECT_EQ(json.at("failures").at(1).at("lifted").at("field").as_string(), "window");
  EXPECT_EQ(json.at("more").as_bool(), true);
}

TEST_F(FailuresTest, NoFailureIsSaid) {
  daemon.list_failures = [](grpc::ServerContext&, const v1::ListFailuresRequest&,
                            v1::ListFailuresResponse&) { return grpc::Status::OK; };
  ASSERT_EQ(program.run({"failures"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text, "no failure stands\n");
  ASSERT_EQ(program.run({"failures", "demo"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text, "no failure stands against demo\n");
  ASSERT_EQ(program.run({"failures", "--all"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text, "no failed load is remembered\n");
  ASSERT_EQ(program.run({"failures", "demo", "--all"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text, "no failed load of demo is remembered\n");
}

TEST_F(FailuresTest, ALimitOutOfRangeIsExitTwo) {
  EXPECT_EQ(program.run({"failures", "--limit", "0"}), ExitCode::kUsage);
  EXPECT_EQ(program.run({"failures", "--limit", "1001"}), ExitCode::kUsage);
}

TEST_F(FailuresTest, L22_WhyTellsEverythingOfTheFailureThatStands) {
  daemon.explain = [](grpc::ServerContext&, const v1::ExplainModelRequest& request,
                      v1::ModelReport& report) {
    EXPECT_EQ(request.model(), "broken");
    report.set_model("broken");
    report.set_state("absent");
    v1::FailureRecord& record = *report.mutable_standing();
    record = standing("broken");
    v1::FailureMemory& memory = *record.add_memory();
    memory.set_domain("host");
    memory.set_free_before(12 * kGiB);
    memory.set_free_at_failure(11 * kGiB);
    v1::Condition& condition = *record.add_conditions();
    condition.set_field("window");
    condition.set_value("4096 tokens");
    record.add_log_tail("error loading model\x1b[31m");
    record.add_command("/usr/libexec/berth-worker");
    record.add_command("a b");
    record.add_environment("LANG=C.UTF-8");
    report.set_log_file("/var/log/berth/broken.log");
    *report.add_lifted() = lifted("broken");
    // As the server tells them, and without the exit in the reason.
    for (const char* reason : {"exit 1: unknown model architecture: 'x'", "not loaded", "exit 1"}) {
      v1::PastLoad& load = *report.add_loads();
      load.set_started_unix_ms(kNow - 3 * kMinute - 250);
      load.set_outcome("failed");
      load.set_class_("permanent");
      load.set_exit("exit 1");
      load.set_reason(reason);
    }
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"why", "broken"}), ExitCode::kOk) << program.err.text;
  EXPECT_EQ(program.out.text,
            "broken is not loaded: its last load failed, and it is not tried again\n"
            "\n"
            "The failure that stands\n"
            "  class      permanent: The file cannot be loaded by this version.\n"
            "  reason     unknown model architecture: 'x'\n"
            "  exit       exit 1\n"
            "  since      3 min ago (2027-01-15T07:57:00.000Z)\n"
            "  load took  250 ms\n"
            "  record     0190-record\n"
            "  instance   0190-instance\n"
            "  log        /var/log/berth/broken.log\n"
            "  memory     host: 12.0 GiB free before, 11.0 GiB free at the failure\n"
            "  way out    Another file lifts this.\n"
            "  restart    a restart of the daemon does not lift it\n"
            "\n"
            "The last lines of its log\n"
            "  | error loading model[31m\n"
            "\n"
            "What was started\n"
            "  LANG=C.UTF-8\n"
            "  /usr/libexec/berth-worker 'a b'\n"
            "\n"
            "It is lifted as soon as one of these is another one\n"
            "  window  4096 tokens\n"
            "\n"
            "Failures that do not stand any more\n"
            "  2 h ago  unclassified, SIGSEGV; lifted 1 h ago: the served window moved: 4096 -> "
            "8192\n"
            "\n"
            "The last loads\n"
            "  3 min ago  failed, permanent, exit 1: unknown model architecture: 'x'\n"
            "  3 min ago  failed, permanent, exit 1: not loaded\n"
            "  3 min ago  failed, permanent, exit 1\n");

  ASSERT_EQ(program.run({"why", "broken", "--json"}), ExitCode::kOk);
  const auto json = boost::json::parse(program.out.text);
  EXPECT_EQ(json.at("standing").at("id").as_string(), "0190-record");
  EXPECT_EQ(json.at("loads").at(0).at("outcome").as_string(), "failed");
}

TEST_F(FailuresTest, WhyOfAModelThatServes) {
  daemon.explain = [](grpc::ServerContext&, const v1::ExplainModelRequest&,
                      v1::ModelReport& report) {
    report.set_model("demo");
    report.set_state("ready");
    report.mutable_instance()->set_pid(4711);
    report.mutable_instance()->set_window(4096);
    report.set_history_problem("the store cannot be read");
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"why", "demo"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text,
            "demo is ready (pid 4711, context 4096); no failure stands against it\n"
            "\n"
            "Earlier loads are not known: the store cannot be read\n");
}

TEST_F(FailuresTest, WhyOfAModelThatIsAbsentOrCannotBeUsed) {
  std::string problem;
  daemon.explain = [&](grpc::ServerContext&, const v1::ExplainModelRequest&,
                       v1::ModelReport& report) {
    report.set_model("demo");
    report.set_state("absent");
    report.set_problem(problem);
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"why", "demo"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text, "demo is not loaded; no failure stands against it\n");
  problem = "The file is truncated.";
  ASSERT_EQ(program.run({"why", "demo"}), ExitCode::kOk);
  EXPECT_EQ(program.out.text, "demo cannot be used: The file is truncated.\n");
}

TEST_F(FailuresTest, WhyOfAnUnknownModelOffersTheNearest) {
  daemon.explain = [](grpc::ServerContext& context, const v1::ExplainModelRequest&,
                      v1::ModelReport&) {
    v1::ErrorDetail error = detail("unknown_model", "there is no model 'dmeo'");
    error.add_suggestions("demo");
    return refuse(context, grpc::StatusCode::NOT_FOUND, error);
  };
  EXPECT_EQ(program.run({"why", "dmeo"}), ExitCode::kNo);
  EXPECT_EQ(program.err.text,
            "berth: there is no model 'dmeo'\n  nearest names: demo\n"
            "  'berth models' lists what there is\n");
}

TEST_F(FailuresTest, L23_RetryTellsWhatItLiftedAndLoads) {
  daemon.retry = [](grpc::ServerContext&, const v1::LoadModelRequest& request,
                    grpc::ServerWriter<v1::LoadEvent>& writer) {
    EXPECT_EQ(request.model(), "broken");
    v1::LoadEvent event;
    *event.mutable_lifted() = standing("broken");
    writer.Write(event);
    event.mutable_loading()->set_phase("weights");
    event.mutable_loading()->set_fraction(0.5F);
    writer.Write(event);
    event.mutable_ready()->set_pid(4711);
    writer.Write(event);
    return grpc::Status::OK;
  };
  ASSERT_EQ(program.run({"retry", "broken", "-v"}), ExitCode::kOk) << program.err.text;
  EXPECT_EQ(program.out.text.find("lifted the failure of 3 min ago (permanent, exit 1: unknown "
                                  "model architecture: 'x')\nbroken is ready (pid 4711), took "),
            0U)
      << program.out.text;
  EXPECT_EQ(program.err.text, "broken: loading (weights) 50 %\n");
  ASSERT_EQ(program.run({"retry", "broken", "--json"}), ExitCode::kOk);
  std::istringstream lines(program.out.text);
  std::string first;
  ASSERT_TRUE(std::getline(lines, first));
  EXPECT_EQ(boost::json::parse(first).at("lifted").at("id").as_string(), "0190-record");
}

TEST_F(FailuresTest, L23_RetryThatFailsAgainIsExitOneWithTheReason) {
  daemon.retry = [](grpc::ServerContext& context, const v1::LoadModelRequest&,
                    grpc::ServerWriter<v1::LoadEvent>& writer) {
    v1::ErrorDetail error = detail("load_failed", "model broken could not be loaded");
    error.mutable_failure()->set_class_("permanent");
    error.mutable_failure()->set_exit_code(1);
    v1::LoadEvent event;
    *event.mutable_error() = error;
    writer.Write(event);
    return refuse(context, grpc::StatusCode::UNAVAILABLE, error);
  };
  EXPECT_EQ(program.run({"retry", "broken"}), ExitCode::kNo);
  EXPECT_EQ(program.err.text,
            "berth: model broken could not be loaded\n  failure: permanent, exit 1\n");
}

TEST_F(FailuresTest, WhyTellsWhatBecameOfARequest) {
  daemon.explain = [](grpc::ServerContext& context, const v1::ExplainModelRequest&,
                      v1::ModelReport&) {
    return refuse(context, grpc::StatusCode::NOT_FOUND,
                  detail("unknown_model", "There is no model of this name."));
  };
  daemon.watch_events = [](grpc::ServerContext&, const v1::WatchEventsRequest& request,
                           grpc::ServerWriter<v1::Event>& writer) {
    EXPECT_EQ(request.prefix(), "request.");
    EXPECT_FALSE(request.request_id().empty());
    // An older daemon gives those of all.
    for (const char* id : {"r-0", "r-1", "r-2"}) {
      v1::Event event;
      event.set_name("request.refused");
      event.set_time_unix_ms(1000);
      const auto add = [&event](const char* name, std::string text) {
        auto& field = *event.add_fields();
        field.set_name(name);
        field.set_text(std::move(text));
      };
      add("request", id);
      add("model", "demo");
      add("message", std::string("no, ") + id);
      writer.Write(event);
    }
    return grpc::Status::OK;
  };
  EXPECT_EQ(program.run({"why", "r-1"}), ExitCode::kOk) << program.err.text;
  EXPECT_NE(program.out.text.find("request r-1 for demo was refused"), std::string::npos);
  EXPECT_NE(program.out.text.find("no, r-1"), std::string::npos);
  EXPECT_EQ(program.out.text.find("r-2"), std::string::npos);
  EXPECT_NE(program.out.text.find("'berth why demo'"), std::string::npos);
  EXPECT_EQ(program.run({"why", "r-1", "--json"}), ExitCode::kOk);
  EXPECT_NE(program.out.text.find("\"request\": \"r-1\""), std::string::npos);
  EXPECT_EQ(program.run({"why", "r-9"}), ExitCode::kNo);
  EXPECT_NE(program.err.text.find("There is no model of this name."), std::string::npos);
  program.err.text.clear();
  EXPECT_EQ(program.run({"why", "01a2b3c4-0000-7000-8000-000000000001"}), ExitCode::kNo);
  EXPECT_EQ(program.err.text,
            "berth: no request 01a2b3c4-0000-7000-8000-000000000001 is known: nobody asked with "
            "this id, or its events are not kept any more\n");
  daemon.watch_events = [](grpc::ServerContext&, const v1::WatchEventsRequest& request,
                           grpc::ServerWriter<v1::Event>&) {
    ADD_FAILURE() << request.request_id() << " is no request's id";
    return grpc::Status::OK;
  };
  EXPECT_EQ(program.run({"why", "my model/2"}), ExitCode::kNo);
  EXPECT_NE(program.err.text.find("There is no model of this name."), std::string::npos);
}

}  // namespace
}  // namespace berth::cli
