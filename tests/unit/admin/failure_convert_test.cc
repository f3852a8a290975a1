#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "supervisor/admin/convert_failure.h"
#include "supervisor/rpc/failure_message.h"

namespace berth::admin {
namespace {

const core::Caller kAdmin{.role = core::Role::kAdmin, .entitled = true};
const core::Caller kClient{.role = core::Role::kClient, .entitled = true};
const core::Caller kStranger;

core::FailureRecord full() {
  core::FailureRecord record;
  record.model = "demo";
  record.failure_class = core::FailureClass::kResource;
  record.reason = "not enough memory";
  record.exit = core::Exited{3};
  record.started = WallTime(std::chrono::milliseconds(1000));
  record.ended = WallTime(std::chrono::milliseconds(1500));
  record.command = {"/usr/libexec/berth-worker", "--key=secret", "\xff"};
  record.environment = {"TOKEN=secret"};
  record.log_tail = {"secret line"};
  record.memory.push_back({.domain = "host",
                           .predicted_charge = {},
                           .free_before = 100,
                           .free_at_failure = 50,
                           .high_water = {},
                           .failing_allocation = 70});
  record.failing_domain = "host";
  record.provenance.files = {{{.path = "/secret/demo.gguf",
                               .size = 4096,
                               .modified_ns = 1'000'000'000,
                               .header_hash = 7}}};
  record.provenance.window = 4096;
  record.provenance.launch_hash = 255;
  return record;
}

TEST(FailureConvert, L18_OnlyAdminsSeeCommandEnvironmentLogAndPaths) {
  const v1::FailureRecord client = to_proto(full(), kClient);
  EXPECT_EQ(client.DebugString().find("secret"), std::string::npos) << client.DebugString();
  EXPECT_TRUE(client.command().empty());
  EXPECT_TRUE(client.environment().empty());
  EXPECT_TRUE(client.log_tail().empty());
  EXPECT_EQ(client.reason(), "not enough memory");
  EXPECT_EQ(client.class_(), "resource");

  const v1::FailureRecord admin = to_proto(full(), kAdmin);
  EXPECT_EQ(admin.command_size(), 3);
  EXPECT_EQ(admin.environment(0), "TOKEN=secret");
  EXPECT_EQ(admin.log_tail(0), "secret line");
  EXPECT_NE(admin.conditions(0).value().find("/secret/demo.gguf (4.00 KiB, written "
                                             "1970-01-01T00:00:01.000Z)"),
            std::string::npos)
      << admin.conditions(0).value();
  EXPECT_FALSE(admin.SerializeAsString().empty()) << "its texts are UTF-8";
}

TEST(FailureConvert, I12_StrangersLearnThatItFailedAndNotWhy) {
  core::FailureRecord record = full();
  for (const bool lifted : {false, true}) {
    if (lifted) {
      record.lifted = core::Lift{record.ended, core::LiftCause::kMemory, {}, "host has more"};
    }
    const v1::FailureRecord to = to_proto(record, kStranger);
    EXPECT_EQ(to.id(), record.id.to_string());
    EXPECT_EQ(to.reason(), "The model could not be loaded.");
    EXPECT_EQ(to.has_lifted(), lifted);
    for (const char* hidden : {"memory", "resource", "host", "exit", "4096", "window", "way_out"}) {
      const std::string all = to.DebugString();
      const bool cause = lifted && std::string(hidden) == "memory";
      EXPECT_EQ(all.find(hidden) != std::string::npos, cause) << all;
    }
  }
  const v1::Failure brief = rpc::to_brief(record, kStranger);
  EXPECT_EQ(brief.reason(), "The model could not be loaded.");
  EXPECT_EQ(brief.class_(), "");
  EXPECT_FALSE(brief.has_exit_code());
  EXPECT_EQ(rpc::to_brief(record, kClient).reason(), "not enough memory");
  EXPECT_EQ(rpc::to_brief(record, kClient).exit_code(), 3);

  store::LoadRecord load;
  load.reason = "unknown architecture of /secret";
  load.failure_class = "permanent";
  load.exit = "exit 3";
  EXPECT_EQ(to_proto(load, kStranger).reason(), "The model could not be loaded.");
  EXPECT_EQ(to_proto(load, kStranger).class_() + to_proto(load, kStranger).exit(), "");
  EXPECT_EQ(to_proto(load, kClient).reason(), "unknown architecture of <path>");
  EXPECT_EQ(to_proto(load, kAdmin).reason(), load.reason);
}

TEST(FailureConvert, L19_KnownConditionsAreToldAndNoOthers) {
  const v1::FailureRecord to = to_proto(full(), kClient);
  ASSERT_EQ(to.conditions_size(), 3);
  EXPECT_EQ(to.conditions(0).field(), "files");
  EXPECT_EQ(to.conditions(1).field(), "window");
  EXPECT_EQ(to.conditions(1).value(), "4096 tokens");
  EXPECT_EQ(to.conditions(2).field(), "launch");
  EXPECT_NE(to.conditions(2).value().find("00000000000000ff"), std::string::npos);
}

TEST(FailureConvert, L18_ExitEvidenceAndMemory) {
  core::FailureRecord record = full();
  v1::FailureRecord to = to_proto(record, kClient);
  EXPECT_EQ(to.exit_code(), 3);
  EXPECT_EQ(to.signal(), "");
  ASSERT_EQ(to.memory_size(), 1);
  EXPECT_EQ(to.memory(0).free_at_failure(), 50U);
  EXPECT_FALSE(to.memory(0).has_high_water());
  record.exit = core::Signalled{SIGSEGV};
  to = to_proto(record, kClient);
  EXPECT_FALSE(to.has_exit_code());
  EXPECT_EQ(to.signal(), "SIGSEGV");
}

TEST(FailureConvert, L22_WhatStandsNamesTheWayOut) {
  const v1::FailureRecord to = to_proto(full(), kClient);
  EXPECT_FALSE(to.has_lifted());
  EXPECT_NE(to.way_out().find("`berth retry demo`"), std::string::npos) << to.way_out();
  EXPECT_FALSE(to.outlives_restart());
}

TEST(FailureConvert, L23_ALiftSaysWhichFieldMoved) {
  core::FailureRecord record = full();
  record.lifted = core::Lift{WallTime(std::chrono::milliseconds(9)),
                             core::LiftCause::kProvenance,
                             core::MovedField{core::ProvenanceField::kWindow, "4096", "8192"},
                             {}};
  const v1::FailureRecord to = to_proto(record, kClient);
  EXPECT_EQ(to.lifted().cause(), "provenance");
  EXPECT_EQ(to.lifted().field(), "window");
  EXPECT_EQ(to.lifted().text(), "the served window moved: 4096 -> 8192");
  EXPECT_EQ(to.lifted().when_unix_ms(), 9);
  EXPECT_EQ(to.way_out(), "");
}

TEST(FailureConvert, APastLoad) {
  store::LoadRecord load;
  load.id = "0190";
  load.started = WallTime(std::chrono::milliseconds(5));
  load.outcome = "ready";
  load.ready = WallTime(std::chrono::milliseconds(15));
  load.load_ms = 10;
  const v1::PastLoad to = to_proto(load, kClient);
  EXPECT_EQ(to.instance_id(), "0190");
  EXPECT_EQ(to.ready_unix_ms(), 15);
  EXPECT_FALSE(to.has_ended_unix_ms());
  EXPECT_EQ(to.load_ms(), 10U);
}

}  // namespace
}  // namespace berth::admin
