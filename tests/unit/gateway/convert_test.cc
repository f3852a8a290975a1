#include "supervisor/gateway/grpc/convert.h"

#include <gtest/gtest.h>

namespace berth::gateway {
namespace {

TEST(Convert, ARequestKeepsAllItsFields) {
  v1::GenerateRequest from;
  from.set_model("demo");
  from.set_request_id("r-1");
  from.mutable_chat()->set_messages_json("[]");
  from.mutable_chat()->set_add_generation_prompt(false);
  from.mutable_sampling()->set_temperature(0.5F);
  from.mutable_sampling()->set_top_k(0);
  from.mutable_sampling()->set_top_p(0.25F);
  from.mutable_sampling()->set_seed(7);
  from.set_max_tokens(3);
  from.add_stop("END");
  const auto to = from_proto(from);
  ASSERT_TRUE(to) << to.error().message;
  EXPECT_EQ(to->model, "demo");
  EXPECT_EQ(to->request_id, "r-1");
  EXPECT_EQ(std::get<core::ChatInput>(to->input).messages_json, "[]");
  EXPECT_FALSE(std::get<core::ChatInput>(to->input).add_generation_prompt);
  EXPECT_EQ(to->sampling.temperature, 0.5F);
  EXPECT_EQ(to->sampling.top_k, 0U);
  EXPECT_EQ(to->sampling.top_p, 0.25F);
  EXPECT_EQ(to->sampling.seed, 7U);
  EXPECT_EQ(to->max_tokens, 3U);
  EXPECT_EQ(to->stop, std::vector<std::string>{"END"});
}

TEST(Convert, AnAbsentFieldStaysAbsent) {
  v1::GenerateRequest from;
  from.set_model("demo");
  from.set_prompt("x");
  const auto to = from_proto(from);
  ASSERT_TRUE(to);
  EXPECT_FALSE(to->sampling.temperature);
  EXPECT_FALSE(to->sampling.seed);
  EXPECT_FALSE(to->max_tokens);
}

TEST(Convert, NoInputIsRefused) {
  v1::GenerateRequest from;
  from.set_model("demo");
  const auto to = from_proto(from);
  ASSERT_FALSE(to);
  EXPECT_EQ(to.error().extras->param, "input");
}

TEST(Convert, PathsAreForAdmins) {
  catalog::Model model;
  model.name = "demo";
  model.path = "/srv/models/demo.gguf";
  EXPECT_EQ(to_proto(model, "absent", /*with_path=*/false).path(), "");
  EXPECT_EQ(to_proto(model, "absent", /*with_path=*/true).path(), model.path);
}

}  // namespace
}  // namespace berth::gateway
