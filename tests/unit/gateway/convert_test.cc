#include "supervisor/gateway/grpc/convert.h"

#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "supervisor/rpc/worker_messages.h"

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

const core::Caller kAdmin{.role = core::Role::kAdmin, .entitled = true};
const core::Caller kClient{.role = core::Role::kClient, .entitled = true};

TEST(Convert, PathsAreForAdmins) {
  catalog::Model model;
  model.name = "demo";
  model.path = "/srv/models/demo.gguf";
  model.problem = "demo-00002-of-00002.gguf is missing.";
  const residency::ModelNow now{.state = "absent", .problem = model.problem};
  const v1::Model cut = to_proto(model, now, kClient);
  EXPECT_EQ(cut.path(), "");
  EXPECT_EQ(cut.problem(), "The model cannot be used.");
  const v1::Model all = to_proto(model, now, kAdmin);
  EXPECT_EQ(all.path(), model.path);
  EXPECT_EQ(all.problem(), model.problem);
}

TEST(Convert, T3_AModelThatFailedIsNotOneThatIsMerelyNotLoaded) {
  v1::ListModelsResponse to;
  for (const auto* const name : {"good", "failed", "loading"}) to.add_models()->set_name(name);
  to.mutable_models(0)->set_state("absent");
  to.mutable_models(1)->set_state("absent");
  to.mutable_models(2)->set_state("loading");
  core::FailureRecord record;
  record.model = "failed";
  record.failure_class = core::FailureClass::kPermanent;
  record.reason = "unknown model architecture";
  record.ended = WallTime(std::chrono::seconds(7));
  record.exit = core::Exited{3};
  auto again = record;
  again.model = "loading";
  put_failures({record, again}, kClient, to);
  EXPECT_EQ(to.models(0).state(), "absent");
  EXPECT_FALSE(to.models(0).has_failure());
  EXPECT_EQ(to.models(1).state(), "failed");
  EXPECT_EQ(to.models(1).failure().class_(), "permanent");
  EXPECT_EQ(to.models(1).failure().reason(), "unknown model architecture");
  EXPECT_EQ(to.models(1).failure().since_unix_ms(), 7000);
  EXPECT_EQ(to.models(1).failure().exit_code(), 3);
  EXPECT_EQ(to.models(2).state(), "loading");
  put_failures({record}, core::Caller{}, to);
  EXPECT_EQ(to.models(1).failure().reason(), "The model could not be loaded.") << "I12: a stranger";
  EXPECT_EQ(to.models(1).failure().class_(), "");
}

// Fills every field, of messages within too, with something that its type can hold; strings are
// JSON, so that they are well-formed wherever they go.
void fill(google::protobuf::Message& message, int& counter) {
  const auto& descriptor = *message.GetDescriptor();
  const auto& reflection = *message.GetReflection();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const auto& field = *descriptor.field(i);
    ++counter;
    using Field = google::protobuf::FieldDescriptor;
    const bool many = field.is_repeated();
    switch (field.cpp_type()) {
      case Field::CPPTYPE_FLOAT:
        many ? reflection.AddFloat(&message, &field, 0.5F)
             : reflection.SetFloat(&message, &field, 1.0F / static_cast<float>(counter));
        break;
      case Field::CPPTYPE_UINT32:
        reflection.SetUInt32(&message, &field, static_cast<std::uint32_t>(counter));
        break;
      case Field::CPPTYPE_INT32:
        many ? reflection.AddInt32(&message, &field, counter)
             : reflection.SetInt32(&message, &field, counter);
        break;
      case Field::CPPTYPE_BOOL:
        reflection.SetBool(&message, &field, true);
        break;
      case Field::CPPTYPE_STRING: {
        const auto text = "[" + std::to_string(counter) + "]";
        many ? reflection.AddString(&message, &field, text)
             : reflection.SetString(&message, &field, text);
        break;
      }
      case Field::CPPTYPE_MESSAGE:
        fill(many ? *reflection.AddMessage(&message, &field)
                  : *reflection.MutableMessage(&message, &field),
             counter);
        break;
      default:
        ADD_FAILURE() << "another type in " << field.full_name();
    }
  }
}

TEST(Convert, EveryOptionOfARequestReachesTheWorker) {
  int counter = 0;
  v1::GenerateRequest request;
  fill(*request.mutable_sampling(), counter);
  fill(*request.mutable_chat(), counter);
  request.set_model("demo");
  request.set_request_id("r-1");
  request.set_max_tokens(7);
  request.set_top_logprobs(3);
  request.add_stop("end");
  for (const auto* const format : {"object", "schema", "grammar"}) {
    if (*format == 'o') request.mutable_format()->set_json_object(true);
    if (*format == 's') request.mutable_format()->set_json_schema("{}");
    if (*format == 'g') request.mutable_format()->set_grammar("root ::= \"a\"");
    const auto made = from_proto(request);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    EXPECT_EQ(rpc::to_proto(*made).ShortDebugString(), request.ShortDebugString());
  }
}

TEST(Convert, EveryPartOfATokenReachesTheClient) {
  int counter = 0;
  v1::GenerateEvent event;
  fill(*event.mutable_token(), counter);
  const auto expected = event.ShortDebugString();
  auto made = rpc::from_proto(event);
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(to_event(std::get<core::TokenEvent>(std::move(*made))).ShortDebugString(), expected);
}

TEST(Convert, S8_TheScopeOfCachedPrefixesIsTheUserNotWhatAClientSays) {
  v1::GenerateRequest request;
  request.set_model("demo");
  request.set_prompt("x");
  request.set_user("ada");
  request.set_cache_scope("of somebody else");
  const auto made = from_proto(request);
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->user, "ada");
  EXPECT_EQ(rpc::to_proto(*made).cache_scope(), "");
}

TEST(Convert, RefusesAFormatThatIsNone) {
  v1::GenerateRequest request;
  request.set_model("demo");
  request.set_prompt("x");
  request.mutable_format()->set_json_object(false);
  const auto made = from_proto(request);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().extras->param, "format.json_object");
}

TEST(Convert, RefusesNumbersThatAreNone) {
  v1::GenerateRequest request;
  request.set_model("demo");
  request.set_prompt("x");
  request.mutable_sampling()->set_min_p(std::nanf(""));
  const auto made = from_proto(request);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().extras->param, "sampling.min_p");
}

}  // namespace
}  // namespace berth::gateway
