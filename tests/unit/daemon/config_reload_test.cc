#include "supervisor/config_reload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace berth {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kServer = "[server]\ngrpc = [\"unix:/run/berth/berth.sock\"]\n";

catalog::ConfigResult parse(const std::string& text) {
  return catalog::parse_config(text, "/etc/berth/berth.toml");
}

catalog::Config config(const std::string& text) {
  catalog::ConfigResult read = parse(text);
  EXPECT_TRUE(read.config) << text;
  return read.config.value_or(catalog::Config());
}

TEST(ConfigReload, L23_SettingsOfModelsTakeEffect) {
  const catalog::Config now = config(std::string(kServer) + "[model.demo]\ncontext = 4096\n");
  const ConfigReload reload =
      reload_config(now, parse(std::string(kServer) + "[model.demo]\ncontext = 512\n"));
  ASSERT_TRUE(reload.config);
  EXPECT_THAT(reload.unapplied, IsEmpty());
  EXPECT_EQ(catalog::effective_settings(*reload.config, "demo").context, 512U);
}

TEST(ConfigReload, WhatTakesARestartIsNamedAndStaysAsItIs) {
  const catalog::Config now = config(kServer);
  const ConfigReload reload =
      reload_config(now, parse(std::string(kServer) + "drain_timeout = \"7s\"\nlog_keep = 9\n"));
  ASSERT_TRUE(reload.config);
  EXPECT_THAT(reload.unapplied,
              ::testing::UnorderedElementsAre("server.drain_timeout", "server.log_keep"));
  EXPECT_EQ(reload.config->server, now.server);
  EXPECT_EQ(reload.config->settings, now.settings);
}

TEST(ConfigReload, M1_BudgetsAndTheWaitsForRoomTakeEffect) {
  const catalog::Config now = config(kServer);
  const ConfigReload reload = reload_config(
      now, parse(std::string(kServer) +
                 "max_wait = \"3s\"\ngrace = \"1s\"\nretry_grace = \"2s\"\nswap_drain = \"9s\"\n"
                 "queue_timeout = \"1m\"\nlog_keep = 9\n[memory]\nhost_budget = \"4GiB\"\n"));
  ASSERT_TRUE(reload.config);
  EXPECT_THAT(reload.unapplied, ::testing::ElementsAre("server.log_keep"));
  const catalog::ServerConfig& server = reload.config->server;
  EXPECT_EQ(server.max_wait, std::chrono::seconds(3));
  EXPECT_EQ(server.grace, std::chrono::seconds(1));
  EXPECT_EQ(server.retry_grace, std::chrono::seconds(2));
  EXPECT_EQ(server.swap_drain, std::chrono::seconds(9));
  EXPECT_EQ(server.queue_timeout, std::chrono::minutes(1));
  EXPECT_EQ(server.log_keep, now.server.log_keep);
  EXPECT_EQ(reload.config->memory.budgets.host, std::uint64_t{4} << 30U);
}

TEST(ConfigReload, AWrongFileChangesNothing) {
  const ConfigReload reload = reload_config(
      config(kServer), parse(std::string(kServer) + "log_kep = 5\nmax_body = true\n"));
  EXPECT_FALSE(reload.config);
  EXPECT_THAT(reload.problem, HasSubstr("/etc/berth/berth.toml:3"));
  EXPECT_THAT(reload.problem, HasSubstr("log_kep"));
  EXPECT_THAT(reload.problem, HasSubstr("1 more"));
}

}  // namespace
}  // namespace berth
