#include "tests/fault_worker/fault_script.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace berth::fault {
namespace {

std::string problem_of(const std::string& text) {
  const auto script = parse_script(text);
  return script ? std::string() : script.error().message;
}

TEST(FaultScript, L28_OrdersStandUnderTheirPhases) {
  const auto script = parse_script(R"(# berth fault script
start: sleep 200ms
load: progress weights 0.5

   & burn 30 1s
   print Traceback (most recent call last):\n  File "x", line 1\xe2\x82\xac
   read 1MiB 10s
ready: leak 10MiB 100MiB
request: say 3
  signal SEGV
term: stall
)");
  ASSERT_TRUE(script) << script.error().message;
  EXPECT_EQ(script->of(Phase::kStart).at(0).time, std::chrono::milliseconds(200));
  const Orders& load = script->of(Phase::kLoad);
  ASSERT_EQ(load.size(), 4U);
  EXPECT_EQ(load[0].name, "weights");
  EXPECT_EQ(load[0].fraction, 0.5F);
  EXPECT_TRUE(load[1].beside);
  EXPECT_EQ(load[2].text, "Traceback (most recent call last):\n  File \"x\", line 1\u20ac");
  EXPECT_EQ(load[3].rate, 1U << 20U);
  EXPECT_EQ(script->of(Phase::kReady).at(0).number, 100U << 20U);
  EXPECT_EQ(script->of(Phase::kRequest).at(1).number, static_cast<std::uint64_t>(SIGSEGV));
  EXPECT_EQ(script->of(Phase::kTerm).at(0).kind, OrderKind::kStall);
}

TEST(FaultScript, L28_NothingMeansAnHonestWorker) {
  const auto script = parse_script("");
  ASSERT_TRUE(script);
  for (const Orders& orders : script->phases) EXPECT_TRUE(orders.empty());
}

TEST(FaultScript, L28_WrongOrdersAreRefusedWithTheirLine) {
  EXPECT_EQ(problem_of("load:\n  dance\n"), "line 2: there is no order \"dance\".");
  EXPECT_EQ(problem_of("exit x"), "line 1: expected: exit STATUS");
  EXPECT_EQ(problem_of("say 3"), "line 1: say is an order for requests.");
  for (const char* wrong : {"exit",
                            "exit 256",
                            "signal NO",
                            "signal 0",
                            "print",
                            "print \\q",
                            "print \\x1",
                            "log x",
                            "flood 0",
                            "flood 9TiB",
                            "sleep",
                            "sleep -1s",
                            "read 1MiB",
                            "burn 101 1s",
                            "leak 1MiB 9TiB",
                            "spawn 65",
                            "spawn 1 quickly",
                            "progress weights nan",
                            "fail permanent",
                            "heartbeats maybe",
                            "set tokens 0",
                            "set colour red",
                            "stall 3"}) {
    EXPECT_NE(problem_of(wrong), "") << wrong;
  }
}

TEST(FaultScript, L28_IsFoundBesideAModelAndWithinIt) {
  std::string directory = "/tmp/berth-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const std::string model = directory + "/m.gguf";
  EXPECT_FALSE(find_script(model));
  std::ofstream(model) << "GGUF" << std::string(100, '\0') << "# berth fault script\nexit 3\n# end"
                       << "\nno order";
  EXPECT_EQ(find_script(model), "# berth fault script\nexit 3");
  std::ofstream(model + ".fault") << "exit 4\n";
  EXPECT_EQ(find_script(model), "exit 4\n");
  std::filesystem::remove_all(directory);
}

TEST(FaultScript, SignalsByNameAndNumber) {
  EXPECT_EQ(signal_number("SEGV"), SIGSEGV);
  EXPECT_EQ(signal_number("SIGKILL"), SIGKILL);
  EXPECT_EQ(signal_number("6"), SIGABRT);
  EXPECT_FALSE(signal_number("65"));
  EXPECT_FALSE(signal_number("-1"));
  EXPECT_FALSE(signal_number(""));
}

}  // namespace
}  // namespace berth::fault
