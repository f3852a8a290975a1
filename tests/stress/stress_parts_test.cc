// The parts of random_requests that would notice something: they have to.

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <boost/json.hpp>
#include <filesystem>
#include <string>

#include "berth/v1/worker.grpc.pb.h"
#include "tests/stress/control_watch.h"
#include "tests/stress/memory_growth.h"
#include "tests/stress/random_call.h"
#include "tests/stress/random_chat.h"

namespace berth::stress {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Optional;

TEST(MemoryGrowth, IsMeasuredFromTheThirdOfAShortRun) {
  MemoryGrowth growth(seconds(9));
  growth.look(seconds(2), 1'000);
  growth.look(seconds(3), 100'000);
  growth.look(seconds(6), 900'000);
  EXPECT_EQ(growth.problem(150'000 + MemoryGrowth::kAllowedKib), std::nullopt);
  EXPECT_THAT(growth.problem(150'001 + MemoryGrowth::kAllowedKib),
              Optional(HasSubstr("grew from 100000")));
}

TEST(MemoryGrowth, TheWarmUpOfALongRunIsAMinute) {
  MemoryGrowth growth(minutes(30));
  growth.look(seconds(59), 1);
  EXPECT_EQ(growth.problem(1'000'000), std::nullopt);
  growth.look(seconds(60), 1);
  EXPECT_NE(growth.problem(1'000'000), std::nullopt);
}

TEST(PlaceOf, TakesTwoNumbersOnly) {
  const auto place = place_of("3.1204", 7);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->seed, 7U);
  EXPECT_EQ(place->thread, 3U);
  EXPECT_EQ(place->number, 1204U);
  for (const auto* text : {"", ".", "3", "3.", ".4", "3.x", "x.4", "1.2.3", "-1.2", "1.2 ", "+1.2",
                           "99999999999999999999.1"}) {
    EXPECT_FALSE(place_of(text, 7)) << text;
  }
}

// Accepts the control stream and never says that the model is loaded.
class SilentWorker final : public v1::Worker::Service {
 public:
  grpc::Status Control(
      grpc::ServerContext* /*context*/,
      grpc::ServerReaderWriter<v1::ControlEvent, v1::ControlRequest>* stream) override {
    v1::ControlRequest request;
    while (stream->Read(&request)) {
    }
    return grpc::Status::OK;
  }
};

TEST(ControlWatch, DoesNotWaitForeverForAModel) {
  std::string directory = "/tmp/berth-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const auto socket = directory + "/s";
  SilentWorker service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  ASSERT_TRUE(server);
  {
    ControlWatch watch(socket, std::chrono::milliseconds(100));
    EXPECT_EQ(watch.wait_ready().has_value(), false);
  }
  server->Shutdown();
  std::filesystem::remove_all(directory);
}

// Those of models in the wild are not all {"type": "object", …}.
TEST(RandomChat, SomeToolsLeaveOpenWhatTheirArgumentsAre) {
  int empty = 0;
  int nullable = 0;
  int plain = 0;
  for (std::uint64_t seed = 0; seed < 2'000; ++seed) {
    Random random(seed);
    const auto chat = random_chat(random);
    if (chat.tools_json().empty()) continue;
    const auto tools = boost::json::parse(chat.tools_json());
    for (const auto& tool : tools.as_array()) {
      const auto* parameters = tool.at("function").as_object().if_contains("parameters");
      if (parameters == nullptr) continue;
      const auto& schema = parameters->as_object();
      const auto* type = schema.if_contains("type");
      empty += schema.empty() ? 1 : 0;
      nullable += type != nullptr && type->is_array() ? 1 : 0;
      plain += type != nullptr && type->is_string() ? 1 : 0;
    }
  }
  EXPECT_GT(empty, 20);
  EXPECT_GT(nullable, 20);
  EXPECT_GT(plain, 200);
}

}  // namespace
}  // namespace berth::stress
