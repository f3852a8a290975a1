#include "supervisor/cli/endpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/cli/fake_daemon.h"
#include "tests/unit/cli/test_program.h"

namespace berth::cli {
namespace {

using test::TemporaryDirectory;
using test::TestProgram;

TEST(Endpoint, ReadsSocketsAndAddresses) {
  const auto socket = parse_endpoint("unix:/run/berth/berth.sock");
  ASSERT_TRUE(socket);
  EXPECT_EQ(socket->socket, "/run/berth/berth.sock");
  EXPECT_EQ(socket->text, "unix:/run/berth/berth.sock");
  EXPECT_EQ(parse_endpoint("unix:///run/a.sock")->socket, "/run/a.sock");
  EXPECT_EQ(parse_endpoint("/run/a.sock")->text, "unix:/run/a.sock");
  EXPECT_EQ(parse_endpoint("unix:a.sock")->socket, "a.sock");

  const auto address = parse_endpoint("127.0.0.1:50061");
  ASSERT_TRUE(address);
  EXPECT_TRUE(address->socket.empty());
  EXPECT_EQ(address->host, "127.0.0.1");
  EXPECT_EQ(address->port, 50061);
  const auto v6 = parse_endpoint("[::1]:1");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->host, "::1");
}

TEST(Endpoint, SaysWhatIsWrongAndWhatWasExpected) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"foo", "'foo' is not an endpoint: expected unix:PATH or HOST:PORT"},
      {"", "is not an endpoint"},
      {":50061", "is not an endpoint"},
      {"host:", "no port from 1 to 65535"},
      {"host:0", "no port from 1 to 65535"},
      {"host:65536", "no port from 1 to 65535"},
      {"host:12x", "no port from 1 to 65535"},
      {"http://localhost:11500", "is a URL"},
      {"::1:50061", "write [::1]:50061"},
      {"unix:", "names no socket"},
      {"unix:/" + std::string(107, 'a'), "108 bytes, but the system allows 107"},
  };
  for (const auto& [text, expected] : cases) {
    const auto endpoint = parse_endpoint(text);
    ASSERT_FALSE(endpoint) << text;
    EXPECT_EQ(endpoint.error().reason, Reason::kInvalidArgument);
    EXPECT_NE(endpoint.error().message.find(expected), std::string::npos)
        << endpoint.error().message;
  }
  EXPECT_TRUE(parse_endpoint("unix:/" + std::string(106, 'a')));
}

TEST(Endpoint, OptionWinsThenVariableThenConfigThenUsualPlaces) {
  const TemporaryDirectory directory;
  TestProgram program;
  const std::string config = directory.path() + "/berth.toml";
  std::ofstream(config) << "[server]\ngrpc = [\"127.0.0.1:1\", \"unix:/run/other.sock\"]\n";

  program.variables["BERTH_CONFIG"] = config;
  program.variables["BERTH_ENDPOINT"] = "unix:/variable.sock";
  EXPECT_EQ(find_endpoint("unix:/option.sock", program.environment)->text, "unix:/option.sock");
  EXPECT_EQ(find_endpoint("", program.environment)->text, "unix:/variable.sock");

  program.variables["BERTH_ENDPOINT"] = "";
  const auto configured = find_endpoint("", program.environment);
  ASSERT_TRUE(configured) << configured.error().message;
  EXPECT_EQ(configured->text, "unix:/run/other.sock");
  EXPECT_EQ(configured->origin, config);

  program.variables["BERTH_CONFIG"] = directory.path() + "/missing.toml";
  const auto usual = find_endpoint("", program.environment);
  ASSERT_TRUE(usual);
  EXPECT_EQ(usual->origin, "default");
}

TEST(Endpoint, ListenerOnEveryAddressIsReachedByLoopback) {
  EXPECT_EQ(parse_endpoint("0.0.0.0:4711")->host, "127.0.0.1");
  EXPECT_EQ(parse_endpoint("[::]:4711")->host, "::1");
}

TEST(Endpoint, BrokenConfigIsANoteAndNoFailure) {
  const TemporaryDirectory directory;
  TestProgram program;
  program.variables["BERTH_CONFIG"] = directory.path() + "/berth.toml";
  std::ofstream(directory.path() + "/berth.toml") << "[server]\ngrcp = 1\n";
  const auto endpoint = find_endpoint("", program.environment);
  ASSERT_TRUE(endpoint);
  EXPECT_NE(endpoint->note.find("berth config check"), std::string::npos);
}

TEST(Endpoint, OwnDaemonOfAUserIsFound) {
  if (std::filesystem::exists("/run/berth/berth.sock")) GTEST_SKIP() << "a system daemon runs here";
  const TemporaryDirectory directory;
  TestProgram program;
  program.variables["XDG_RUNTIME_DIR"] = directory.path();
  EXPECT_EQ(find_endpoint("", program.environment)->text, "unix:/run/berth/berth.sock");
  std::filesystem::create_directory(directory.path() + "/berth");
  std::ofstream(directory.path() + "/berth/berth.sock") << "";
  EXPECT_EQ(find_endpoint("", program.environment)->socket, directory.path() + "/berth/berth.sock");
}

TEST(Endpoint, WrongOneIsNamedWithWhereItCameFrom) {
  TestProgram program;
  EXPECT_EQ(find_endpoint("x", program.environment).error().message.substr(0, 11), "--endpoint:");
  program.variables["BERTH_ENDPOINT"] = "x";
  EXPECT_EQ(find_endpoint("", program.environment).error().message.substr(0, 15),
            "BERTH_ENDPOINT:");
}

}  // namespace
}  // namespace berth::cli
