#include "supervisor/command_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "supervisor/command_runs.h"

namespace berth {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

catalog::ModelSettings command(std::vector<std::string> argv) {
  catalog::ModelSettings settings;
  settings.kind = catalog::Kind::kCommand;
  settings.command = std::move(argv);
  return settings;
}

Result<CommandLaunch> prepare(const catalog::ModelSettings& settings) {
  process::PortBook ports;
  return prepare_command(settings, command_template(settings, {"PATH=/usr/bin:/bin"}), "/r/a.sock",
                         ports);
}

TEST(CommandLaunch, L27_PortAndKeyAreFilledInForEachRun) {
  auto settings = command({"sh", "--port={port}", "{{port}}"});
  settings.environment = {{"KEY", "{api_key}"}, {"AT", "127.0.0.1:{port}"}};
  const auto one = prepare(settings);
  const auto two = prepare(settings);
  ASSERT_TRUE(one) << one.error().message;
  ASSERT_TRUE(two) << two.error().message;
  const std::string port = std::to_string(one->port.port);
  EXPECT_NE(one->port.port, 0);
  EXPECT_THAT(one->argv, ElementsAre("sh", "--port=" + port, "{port}"));
  EXPECT_THAT(one->environment, Contains("AT=127.0.0.1:" + port));
  EXPECT_THAT(one->environment, Contains("KEY=" + one->key));
  EXPECT_EQ(one->key.size(), 64U);
  EXPECT_EQ(one->socket, "");
  const ProgramPlace place{"sh", "", "/usr/bin:/bin"};
  EXPECT_EQ(one->place, place);
  EXPECT_NE(one->key, two->key);
  EXPECT_NE(one->port.port, two->port.port);
}

TEST(CommandLaunch, L27_ASocketNeedsNoPort) {
  const auto launch = prepare(command({"sh", "--uds", "{socket}"}));
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_EQ(launch->socket, "/r/a.sock");
  EXPECT_EQ(launch->port.port, 0);
  EXPECT_THAT(launch->argv, ElementsAre("sh", "--uds", "/r/a.sock"));
}

TEST(CommandLaunch, L19_TheTemplateIsTheSameForEachRun) {
  auto settings = command({"sh", "{port}", "{socket}", "{api_key}"});
  settings.environment = {{"KEY", "{api_key}"}};
  const CommandTemplate open = command_template(settings, {"PATH=/bin"});
  EXPECT_EQ(open.argv, settings.command);
  EXPECT_THAT(open.environment, ElementsAre("PATH=/bin", "KEY={api_key}"));
}

TEST(CommandLaunch, L19_WhatALoginGivesAnewIsHandedOnAndNotHashed) {
  auto settings = command({"sh", "{port}"});
  settings.environment = {{"XDG_SEAT", "seat9"}};
  const std::vector<std::string> own = {"PATH=/bin",
                                        "XDG_SESSION_ID=7",
                                        "XDG_RUNTIME_DIR=/run/user/1000",
                                        "XDG_SEAT=seat0",
                                        "XDG_CACHE_HOME=/c",
                                        "XDG_DATA_DIRS=/d",
                                        "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus",
                                        "INVOCATION_ID=0123",
                                        "JOURNAL_STREAM=8:1234"};
  const CommandTemplate open = command_template(settings, own);
  EXPECT_THAT(open.environment,
              ElementsAre("PATH=/bin", "XDG_SESSION_ID=7", "XDG_RUNTIME_DIR=/run/user/1000",
                          "XDG_CACHE_HOME=/c", "XDG_DATA_DIRS=/d", "XDG_SEAT=seat9"));
  EXPECT_THAT(hashed_environment(settings, open),
              ElementsAre("PATH=/bin", "XDG_CACHE_HOME=/c", "XDG_DATA_DIRS=/d", "XDG_SEAT=seat9"));
}

TEST(CommandLaunch, L27_TheEnvironmentIsThatOfASessionAndItsOwn) {
  auto settings = command({"sh", "{port}"});
  settings.environment = {{"HOME", "/own"}};
  const CommandTemplate open = command_template(
      settings, {"HOME=/root", "LANG=C", "LC_ALL=C", "NOTIFY_SOCKET=/run/x", "LISTEN_FDS=1",
                 "BERTH_CONFIG=/x", "CUDA_VISIBLE_DEVICES=0", "PATHS=/x", "odd"});
  EXPECT_THAT(open.environment, ElementsAre("LANG=C", "LC_ALL=C", "CUDA_VISIBLE_DEVICES=0",
                                            "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/own"));
}

TEST(CommandRuns, L27_EachModelHasItsOwnRunAndProcess) {
  CommandRuns runs;
  for (const std::string name : {"a", "b"}) {
    CommandRun run;
    run.model = name;
    runs.put("instance of " + name, std::move(run));
  }
  runs.started("a", "instance of a", 11);
  runs.started("b", "an older one", 12);
  ASSERT_TRUE(runs.find("instance of a"));
  ASSERT_TRUE(runs.find("instance of b"));
  EXPECT_EQ(runs.find("instance of a")->model, "a");
  EXPECT_EQ(runs.find("instance of a")->pid, 11);
  EXPECT_EQ(runs.find("instance of b")->pid, 0);
}

TEST(CommandLaunch, L27_WhatBerthdWasGivenIsNotFilledIn) {
  auto settings = command({"sh", "{port}"});
  process::PortBook ports;
  const auto launch = prepare_command(
      settings, command_template(settings, {"PATH=/bin", "LANG={api_key}"}), "", ports);
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_THAT(launch->environment, Contains("LANG={api_key}"));
}

TEST(CommandLaunch, L27_ItsProgramIsLookedForWhereItsOwnVariablesSay) {
  auto settings = command({"serve-{port}", "{port}"});
  settings.directory = "/models";
  settings.environment = {{"PATH", "/opt/{port}/bin"}};
  const auto launch = prepare(settings);
  ASSERT_TRUE(launch) << launch.error().message;
  const std::string port = std::to_string(launch->port.port);
  const ProgramPlace expected{"serve-" + port, "/models", "/opt/" + port + "/bin"};
  EXPECT_EQ(launch->place, expected);
}

}  // namespace
}  // namespace berth
