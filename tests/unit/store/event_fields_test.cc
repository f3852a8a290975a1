#include "supervisor/store/event_fields.h"

#include <gtest/gtest.h>

#include <limits>

namespace berth::store {
namespace {

using Fields = std::vector<std::pair<std::string, FieldValue>>;

TEST(EventFields, RoundTripKeepsTypesAndOrder) {
  const std::vector<EventField> fields = {{"zeta", std::string("a \"b\"\n\\ ä 🙂")},
                                          {"alpha", std::int64_t{-7}},
                                          {"most", std::numeric_limits<std::int64_t>::max()},
                                          {"fraction", 1.0},
                                          {"small", 1e-300},
                                          {"yes", true},
                                          {"empty", std::string()}};
  const Fields back = decode_fields(encode_fields(fields));
  ASSERT_EQ(back.size(), fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    EXPECT_EQ(back[i].first, fields[i].name);
    EXPECT_EQ(back[i].second, fields[i].value) << fields[i].name;
  }
}

TEST(EventFields, WhatJsonCannotSayBecomesText) {
  const Fields back = decode_fields(encode_fields(
      {{"bytes", std::string("a\xff\xfe z")}, {"far", std::numeric_limits<double>::infinity()}}));
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(std::get<std::string>(back[0].second), "a z");
  EXPECT_EQ(std::get<std::string>(back[1].second), "inf");
}

TEST(EventFields, ForeignTextIsNoError) {
  EXPECT_TRUE(decode_fields("").empty());
  EXPECT_TRUE(decode_fields("[1]").empty());
  EXPECT_TRUE(decode_fields("{\"a\":").empty());
  const Fields back = decode_fields(R"({"a":null,"b":{"c":1},"d":2})");
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(back[0].first, "d");
}

}  // namespace
}  // namespace berth::store
