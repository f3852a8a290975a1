#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/integration/worker/software_device.h"
#include "tests/integration/worker/worker_process.h"
#include "tests/models/draft_pair.h"
#include "tests/models/random_model.h"

namespace berth::worker {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

// The first prompt on a software device may compile shaders for 20 s.
class Device : public SoftwareDevice {
 protected:
  [[nodiscard]] std::string random_file(const test_models::ModelOptions& options) const {
    auto path = directory_ + "/" + options.architecture + ".gguf";
    const auto written = test_models::write_model(options, path);
    EXPECT_TRUE(written) << written.error().message;
    return path;
  }
};

v1::Ready ready_of(WorkerProcess& worker) {
  const auto event = worker.wait_loaded();
  EXPECT_TRUE(event && event->has_ready()) << worker.log();
  return event ? event->ready() : v1::Ready();
}

v1::MemoryUse memory_of(const v1::Ready& ready, const std::string& domain) {
  for (const auto& use : ready.memory()) {
    if (use.domain() == domain) return use;
  }
  ADD_FAILURE() << "no memory of " << domain;
  return {};
}

// A few conversations of tinychat; each has one right answer.
void expect_right_answers(WorkerProcess& worker) {
  std::ifstream file(BERTH_MODELS "/samples.json");
  const auto samples = Json::parse(file);
  for (std::size_t i = 0; i < 3; ++i) {
    auto messages = Json::array();
    for (const auto& turn : samples[i]["turns"]) {
      messages.push_back({{"role", "user"}, {"content", turn["user"]}});
      const auto outcome = worker.generate(greedy_messages(messages.dump()));
      ASSERT_TRUE(outcome.done.has_value()) << outcome.status.error_message() << worker.log();
      EXPECT_EQ(outcome.text, turn["expected"]);
      messages.push_back({{"role", "assistant"}, {"content", turn["expected"]}});
    }
  }
}

std::vector<int> says(WorkerProcess& worker) {
  auto request = greedy_prompt("the cat and the dog");
  request.set_max_tokens(12);
  const auto outcome = worker.generate(request);
  EXPECT_TRUE(outcome.done.has_value()) << outcome.status.error_message() << worker.log();
  return outcome.ids;
}

TEST_F(Device, HoldsAllLayersAndSaysTheSame) {
  WorkerProcess worker({.model = tinychat(),
                        .arguments = {"--context", "2048", "--device", "Vulkan0"},
                        .wrapper = with_device()});
  const auto ready = ready_of(worker);
  EXPECT_THAT(ready.devices(), ElementsAre("Vulkan0"));
  EXPECT_EQ(ready.device_layers(), 5U);  // four and the output
  EXPECT_EQ(ready.layers(), 5U);
  EXPECT_EQ(ready.memory_size(), 2);
  const auto device = memory_of(ready, "Vulkan0");
  EXPECT_GT(device.weights_bytes(), 2000000U);
  EXPECT_EQ(device.kv_bytes(), 2048U * 2048);  // 2 KiB a token
  EXPECT_GT(device.working_bytes(), 0U);
  const auto host = memory_of(ready, "host");
  EXPECT_GT(host.weights_bytes(), 0U);  // the embedding stays
  EXPECT_EQ(host.kv_bytes(), 0U);
  EXPECT_GT(host.working_bytes(), 0U);
  expect_right_answers(worker);
}

TEST_F(Device, HoldsSomeLayersAndSaysTheSame) {
  WorkerProcess worker(
      {.model = tinychat(),
       .arguments = {"--context", "2048", "--device", "Vulkan0", "--device-layers", "3"},
       .wrapper = with_device()});
  const auto ready = ready_of(worker);
  EXPECT_THAT(ready.devices(), ElementsAre("Vulkan0"));
  EXPECT_EQ(ready.device_layers(), 3U);
  EXPECT_EQ(ready.layers(), 5U);
  EXPECT_EQ(memory_of(ready, "Vulkan0").kv_bytes(), 2048U * 1024);  // of two layers
  EXPECT_EQ(memory_of(ready, "host").kv_bytes(), 2048U * 1024);
  expect_right_answers(worker);
}

TEST_F(Device, RandomModelsSayTheSameAsOnTheProcessor) {
  struct Case {
    std::string architecture;
    std::vector<std::string> layers;
  };
  for (const auto& [architecture, placements] : {Case{"qwen3", {"1", "3"}}, Case{"mamba", {"3"}}}) {
    const auto model = random_file({.architecture = architecture});
    WorkerProcess processor({.model = model});
    EXPECT_EQ(ready_of(processor).devices_size(), 0);
    const auto expected = says(processor);
    for (const auto& layers : placements) {
      WorkerProcess worker({.model = model,
                            .arguments = {"--device=Vulkan0", "--device-layers", layers},
                            .wrapper = with_device()});
      const auto ready = ready_of(worker);
      EXPECT_EQ(std::to_string(ready.device_layers()), layers) << architecture;
      EXPECT_EQ(says(worker), expected) << architecture << " with " << layers << " layers";
    }
  }
}

TEST_F(Device, NoLayersOnItMeansNoDeviceInUse) {
  WorkerProcess worker({.model = random_file({}),
                        .arguments = {"--device=Vulkan0", "--device-layers=0"},
                        .wrapper = with_device()});
  const auto ready = ready_of(worker);
  EXPECT_EQ(ready.devices_size(), 0);
  EXPECT_EQ(ready.device_layers(), 0U);
  EXPECT_EQ(ready.layers(), 3U);
}

TEST_F(Device, DraftModelsGoWhereTheModelGoes) {
  const auto target = directory_ + "/target.gguf";
  const auto draft = directory_ + "/draft.gguf";
  ASSERT_TRUE(test_models::write_draft_pair({.layers = 4}, target, draft));
  WorkerProcess processor({.model = target});
  ASSERT_TRUE(processor.wait_loaded());
  const auto expected = says(processor);
  std::uint64_t alone = 0;
  {
    WorkerProcess worker(
        {.model = target, .arguments = {"--device=Vulkan0"}, .wrapper = with_device()});
    alone = memory_of(ready_of(worker), "Vulkan0").weights_bytes();
  }
  WorkerProcess worker({.model = target,
                        .arguments = {"--device=Vulkan0", "--draft", draft},
                        .wrapper = with_device()});
  const auto ready = ready_of(worker);
  EXPECT_EQ(ready.draft_tokens(), 8U);
  EXPECT_GT(memory_of(ready, "Vulkan0").weights_bytes(), alone);
  EXPECT_EQ(says(worker), expected);
}

// The embedding of a text, with the length 1.
std::vector<float> embedding_of(WorkerProcess& worker) {
  v1::EmbedRequest request;
  request.add_inputs()->set_text("the cat and the dog");
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::EmbedResponse response;
  const auto status = worker.stub().Embed(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message() << worker.log();
  if (response.embeddings_size() != 1) return {};
  return {response.embeddings(0).values().begin(), response.embeddings(0).values().end()};
}

TEST_F(Device, EncodersGiveTheSameOnIt) {
  const auto model = random_file({.architecture = "bert"});
  WorkerProcess processor({.model = model});
  ready_of(processor);
  const auto expected = embedding_of(processor);
  WorkerProcess worker(
      {.model = model, .arguments = {"--device=Vulkan0"}, .wrapper = with_device()});
  const auto ready = ready_of(worker);
  EXPECT_TRUE(ready.can_embed());
  EXPECT_THAT(ready.devices(), ElementsAre("Vulkan0"));
  EXPECT_EQ(memory_of(ready, "Vulkan0").kv_bytes(), 0U);
  const auto given = embedding_of(worker);
  ASSERT_EQ(given.size(), expected.size());
  double likeness = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    likeness += static_cast<double>(given[i]) * static_cast<double>(expected[i]);
  }
  EXPECT_GT(likeness, 0.999);  // the cosine of the angle between them
}

// Never silently on the processor.
TEST_F(Device, T71_ADeviceThatIsNotThereEndsTheLoadAndIsNamed) {
  const auto failure = [](const std::string& device, const std::vector<std::string>& wrapper) {
    WorkerProcess worker(
        {.model = tinychat(), .arguments = {"--device", device}, .wrapper = wrapper});
    const auto event = worker.wait_loaded();
    EXPECT_TRUE(event && event->has_load_failed()) << worker.log();
    EXPECT_EQ(worker.wait_exit().code, 1);
    if (!event) return std::string();
    EXPECT_EQ(event->load_failed().class_(), "permanent");
    return event->load_failed().reason();
  };
  const auto index = failure("Vulkan7", with_device());
  EXPECT_THAT(index, HasSubstr("no device Vulkan7"));
  EXPECT_THAT(index, HasSubstr("finds Vulkan0"));
  EXPECT_THAT(failure("Vulkan0,Vulkan0", with_device()), HasSubstr("twice"));
  EXPECT_THAT(failure("Warp9", with_device()), HasSubstr("no device Warp9"));
  EXPECT_THAT(failure("CPU", with_device()), HasSubstr("CPU is the processor"));
  // No driver finds a device.
  const auto none = failure("Vulkan0", {"/usr/bin/env", "VK_DRIVER_FILES=/dev/null"});
  EXPECT_THAT(none, HasSubstr("no device Vulkan0; its backend finds none"));
}

TEST_F(Device, L15_MemoryThatItCannotGiveIsResource) {
  // 16 Mi tokens of 4 KiB.
  WorkerProcess worker({.model = tinychat(),
                        .arguments = {"--device=Vulkan0", "--context=16777216", "--kv-type=f32"},
                        .wrapper = with_device()});
  const auto event = worker.wait_loaded();
  ASSERT_TRUE(event && event->has_load_failed()) << worker.log();
  EXPECT_EQ(event->load_failed().class_(), "resource") << event->load_failed().reason();
  EXPECT_THAT(event->load_failed().reason(), HasSubstr("failed to allocate Vulkan0 buffer"));
}

// A driver that is not needed costs a cold start 50 ms and more.
TEST_F(Device, OnlyNeededBackendsAreLoaded) {
  const auto loads_vulkan = [](const std::vector<std::string>& arguments) {
    WorkerProcess worker({.model = tinychat(), .arguments = arguments, .wrapper = with_device()});
    ready_of(worker);
    std::ifstream file("/proc/" + std::to_string(worker.pid()) + "/maps");
    const std::string maps((std::istreambuf_iterator<char>(file)), {});
    EXPECT_THAT(maps, HasSubstr("libggml-cpu-"));
    EXPECT_THAT(maps, testing::Not(HasSubstr("libggml-cuda")));
    return maps.find("libggml-vulkan") != std::string::npos;
  };
  EXPECT_FALSE(loads_vulkan({}));
  EXPECT_TRUE(loads_vulkan({"--device=Vulkan0"}));
}

TEST_F(Device, M1_IsListed) {
  std::string command;
  for (const auto& word : with_device()) command += word + " ";
  FILE* const pipe = ::popen((command + BERTH_WORKER " --devices 2>/dev/null").c_str(), "re");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  std::array<char, 4096> bytes{};
  while (const auto size = std::fread(bytes.data(), 1, bytes.size(), pipe)) {
    output.append(bytes.data(), size);
  }
  EXPECT_EQ(::pclose(pipe), 0);
  const auto list = Json::parse(output)["devices"];
  const auto device = std::find_if(list.begin(), list.end(),
                                   [](const Json& one) { return one["name"] == "Vulkan0"; });
  ASSERT_NE(device, list.end()) << output;
  EXPECT_THAT((*device)["description"].get<std::string>(), HasSubstr("llvmpipe"));
  EXPECT_EQ((*device)["type"], "gpu");
  EXPECT_TRUE((*device)["id"].is_string());
  EXPECT_GT((*device)["total_bytes"], 1000000000U);
  EXPECT_GT((*device)["free_bytes"], 0U);
}

}  // namespace
}  // namespace berth::worker
