#include "supervisor/store/failure_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>

#include "tests/unit/store/failure_records.h"

namespace berth::store {
namespace {

using testing::full_failure;

core::FailureRecord round_trip(const core::FailureRecord& record) {
  core::FailureRecord back;
  back.id = record.id;
  back.model = record.model;
  back.failure_class = record.failure_class;
  back.ended = record.ended;
  decode_failure(encode_failure(record), back);
  return back;
}

TEST(FailureJson, L18_EveryFieldComesBack) {
  core::FailureRecord record = full_failure(7, "m");
  EXPECT_EQ(round_trip(record), record);
  record.exit = core::Signalled{SIGSEGV, true};
  EXPECT_EQ(round_trip(record), record);
  record.exit = core::UnknownExit{};
  EXPECT_EQ(round_trip(record), record);
  record.exit.reset();
  record.memory.clear();
  record.provenance = {};
  EXPECT_EQ(round_trip(record), record);
}

TEST(FailureJson, WhatIsNoTextBecomesPrintable) {
  core::FailureRecord record = full_failure(7, "m");
  record.command = {"a\xff\xfe z"};
  record.provenance.files->front().path = "/models/\xff.gguf";
  const core::FailureRecord back = round_trip(record);
  EXPECT_EQ(back.command.front(), "a z");
  // A name that is kept otherwise would lift the failure at the next start.
  EXPECT_EQ(back.provenance, record.provenance);
}

TEST(FailureJson, ForeignTextIsNoError) {
  for (const char* text :
       {"", "[1]", "{\"reason\":", "{}", "{\"reason\":3,\"exit\":[],\"memory\":{}}",
        R"({"memory":[1,{"domain":7,"free_before":-1,"high_water":1.5}]})",
        R"({"exit":{"code":99999999999},"started_ms":"x","provenance":[]})",
        R"({"provenance":{"files":"+|x","window":7,"colour":"+|blue"}})"}) {
    core::FailureRecord record;
    decode_failure(text, record);
    EXPECT_FALSE(record.provenance.files) << text;
    core::Lift lift;
    decode_lift(text, lift);
    EXPECT_FALSE(lift.moved) << text;
  }
}

TEST(FailureJson, L23_LiftComesBack) {
  core::Lift lift{testing::at_ms(5), core::LiftCause::kProvenance,
                  core::MovedField{core::ProvenanceField::kWindow, "4096", "8192"}, "a \"b\""};
  core::Lift back{lift.when, lift.cause, std::nullopt, {}};
  decode_lift(encode_lift(lift), back);
  EXPECT_EQ(back, lift);
}

}  // namespace
}  // namespace berth::store
