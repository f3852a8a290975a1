#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <limits>

#include "berth/v1/admin.pb.h"
#include "berth/v1/inference.pb.h"
#include "common/proto_json/json_writer.h"
#include "common/proto_json/proto_json.h"

namespace berth {
namespace {

TEST(JsonWriter, WritesLinesAndIndented) {
  const auto write = [](JsonWriter::Layout layout) {
    JsonWriter json(layout);
    json.begin_object();
    json.member("a", "x\n");
    json.key("b");
    json.begin_array();
    json.integer(-1);
    json.truth(true);
    json.null();
    json.end_array();
    json.key("c");
    json.begin_object();
    json.end_object();
    json.end_object();
    return json.str();
  };
  EXPECT_EQ(write(JsonWriter::Layout::kLine), R"({"a":"x\n","b":[-1,true,null],"c":{}})");
  EXPECT_EQ(write(JsonWriter::Layout::kIndented),
            "{\n  \"a\": \"x\\n\",\n  \"b\": [\n    -1,\n    true,\n    null\n  ],\n  \"c\": "
            "{}\n}");
}

TEST(ProtoJson, UsesTheNamesOfTheProtoAndNumbers) {
  v1::Instance instance;
  instance.set_model("demo");
  instance.set_weights_bytes(std::uint64_t{1} << 40U);
  instance.set_state_since_unix_ms(-5);
  instance.add_command("a");
  const auto value = boost::json::parse(to_json(instance, JsonWriter::Layout::kIndented));
  EXPECT_EQ(value.at("model").as_string(), "demo");
  EXPECT_EQ(value.at("weights_bytes").to_number<std::uint64_t>(), std::uint64_t{1} << 40U);
  EXPECT_EQ(value.at("state_since_unix_ms").to_number<std::int64_t>(), -5);
  EXPECT_EQ(value.at("command").as_array().size(), 1U);
  // Plain fields are always there, optional ones and messages when they are set.
  EXPECT_EQ(value.at("active").to_number<int>(), 0);
  EXPECT_FALSE(value.as_object().contains("ttl_ms"));
  EXPECT_FALSE(value.as_object().contains("loading"));
  instance.set_ttl_ms(0);
  EXPECT_NE(to_json(instance, JsonWriter::Layout::kLine).find("\"ttl_ms\":0"), std::string::npos);
}

TEST(ProtoJson, OneofHasOnlyTheMemberThatIsSet) {
  v1::GenerateEvent event;
  EXPECT_EQ(to_json(event, JsonWriter::Layout::kLine), "{}");
  event.mutable_token()->set_text("hé\"");
  event.mutable_token()->add_ids(7);
  EXPECT_EQ(to_json(event, JsonWriter::Layout::kLine),
            R"({"token":{"text":"hé\"","ids":[7],"logprobs":[],"reasoning":"","tool_calls":[]}})");
  event.mutable_loading()->set_fraction(0.1F);
  EXPECT_EQ(to_json(event, JsonWriter::Layout::kLine),
            R"({"loading":{"phase":"","fraction":0.1,"waits_for":""}})");
}

TEST(ProtoJson, BytesAreTextAndNumbersAreJson) {
  v1::LogChunk chunk;
  chunk.set_data("a\xFF");
  EXPECT_EQ(to_json(chunk, JsonWriter::Layout::kLine), "{\"data\":\"a\xEF\xBF\xBD\"}");
  v1::EventField field;
  field.set_number(std::numeric_limits<double>::infinity());
  EXPECT_EQ(to_json(field, JsonWriter::Layout::kLine), R"({"name":"","number":null})");
}

}  // namespace
}  // namespace berth
