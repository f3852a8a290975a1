#include "supervisor/worker_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/process/unix_socket.h"

namespace berth {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const Uuid kInstance = Uuid::make(WallTime{std::chrono::milliseconds(1)}, 2, 3);

std::string line_of(const catalog::Model& model, const WorkerPlace& place) {
  std::string line;
  for (const std::string& word : worker_arguments("/bin/w", model, place, kInstance, "/s")) {
    line += word + "|";
  }
  return line;
}

std::string line_of(const catalog::Model& model) {
  return line_of(model, configured_place(model));
}

TEST(WorkerCommand, SocketsAreShortAndDiffer) {
  const std::string socket = worker_socket("/run/berth", kInstance);
  EXPECT_EQ(socket.size(), std::string("/run/berth").size() + worker_socket_suffix_bytes());
  EXPECT_LT(socket.size(), process::kLongestSocketPath / 2);
  EXPECT_NE(socket, worker_socket("/run/berth", Uuid::make(WallTime{}, 2, 4)));
}

TEST(WorkerCommand, T90_SettingsReachTheCommandLine) {
  catalog::Model model;
  model.path = "/m/a b.gguf";
  model.served_context = 2048;
  model.settings.sequences = 2;
  model.settings.threads = 3;
  model.settings.batch = 256;
  model.settings.kv_type = "q8_0";
  model.settings.chat_template = "/t.jinja";
  const std::string line = line_of(model);
  EXPECT_THAT(line, HasSubstr("--model|/m/a b.gguf|"));
  EXPECT_THAT(line, HasSubstr("--context|2048|"));
  EXPECT_THAT(line, HasSubstr("--sequences|2|"));
  EXPECT_THAT(line, HasSubstr("--threads|3|"));
  EXPECT_THAT(line, HasSubstr("--batch|256|"));
  EXPECT_THAT(line, HasSubstr("--kv-type|q8_0|"));
  EXPECT_THAT(line, HasSubstr("--chat-template|/t.jinja|"));
  EXPECT_THAT(line, HasSubstr("--socket|/s|"));
}

TEST(WorkerCommand, ABuiltinTemplateGoesByItsName) {
  catalog::Model model;
  model.settings.chat_template = "builtin:chatml";
  EXPECT_THAT(line_of(model), HasSubstr("--chat-template|chatml|"));
}

TEST(WorkerCommand, T90_PlacementReachesTheCommandLine) {
  catalog::Model model;
  EXPECT_THAT(line_of(model), Not(HasSubstr("--device")));
  model.settings.gpu_layers = 7;
  EXPECT_THAT(line_of(model), Not(HasSubstr("--device")));
  model.settings.devices = {"Vulkan0", "CUDA1"};
  EXPECT_THAT(line_of(model), HasSubstr("--device|Vulkan0|--device|CUDA1|--device-layers|7|"));
  model.settings.gpu_layers.reset();
  EXPECT_THAT(line_of(model), HasSubstr("--device|Vulkan0|--device|CUDA1|"));
  EXPECT_THAT(line_of(model), Not(HasSubstr("--device-layers")));
  model.settings.gpu_layers = 0;
  EXPECT_THAT(line_of(model), Not(HasSubstr("--device")));
}

// Two cards that libllama lists as CUDA0 and CUDA1, of which the first is also Vulkan0; and one
// that shares the main memory.
core::DomainTable some_table() {
  core::DomainTable table;
  table.domains = {{.id = "host", .device = ""},
                   {.id = "GPU-1111", .device = "CUDA0"},
                   {.id = "GPU-2222", .device = "CUDA1"}};
  table.by_device = {{"CUDA0", 1}, {"CUDA1", 2}, {"Vulkan0", 1}, {"Vulkan9", 0}};
  return table;
}

catalog::Model model_of_layers(std::size_t layers) {
  catalog::Model model;
  auto parts = std::make_shared<catalog::ModelParts>();
  parts->model.layers.resize(layers);
  model.parts = std::move(parts);
  model.served_context = 8192;
  return model;
}

residency::LaunchPlan plan_of(std::vector<core::Placement::Share> shares) {
  residency::LaunchPlan plan;
  plan.at.placement.shares = std::move(shares);
  return plan;
}

TEST(WorkerCommand, M6_ThePlannedWindowReachesTheCommandLine) {
  const catalog::Model model = model_of_layers(4);
  EXPECT_EQ(planned_place(model, {}, {}), (WorkerPlace{.window = 8192}));
  EXPECT_EQ(planned_place(model, {.window = 4096}, {}), (WorkerPlace{.window = 4096}));
  EXPECT_THAT(line_of(model, {.window = 4096}), HasSubstr("--context|4096|"));
}

TEST(WorkerCommand, M17_OneDeviceOfSeveralIsTheOneOfThePlan) {
  catalog::Model model = model_of_layers(4);
  model.settings.devices = {"CUDA0", "GPU-2222"};
  const WorkerPlace all = planned_place(model, plan_of({{2, 5}}), some_table());
  EXPECT_EQ(all, (WorkerPlace{.window = 8192, .devices = {"CUDA1"}}));
  const WorkerPlace some = planned_place(model, plan_of({{1, 3}}), some_table());
  EXPECT_EQ(some, (WorkerPlace{.window = 8192, .devices = {"CUDA0"}, .device_layers = 3}));
  EXPECT_THAT(line_of(model, some), HasSubstr("--device|CUDA0|--device-layers|3|"));
}

TEST(WorkerCommand, M17_ASplitGoesLayerByLayer) {
  catalog::Model model = model_of_layers(4);
  model.settings.devices = {"CUDA0", "CUDA1"};
  const WorkerPlace place = planned_place(model, plan_of({{1, 3}, {2, 2}}), some_table());
  EXPECT_EQ(place, (WorkerPlace{.window = 8192, .devices = {"CUDA0", "CUDA1"}, .split = {3, 2}}));
  EXPECT_THAT(line_of(model, place),
              HasSubstr("--device|CUDA0|--device|CUDA1|--device-split|3,2|"));
  EXPECT_EQ(
      planned_place(model, plan_of({{2, 1}, {1, 2}}), some_table()),
      (WorkerPlace{
          .window = 8192, .devices = {"CUDA1", "CUDA0"}, .device_layers = 3, .split = {1, 2}}));
}

TEST(WorkerCommand, M17_ADeviceKeepsTheBackendThatTheConfigurationNames) {
  catalog::Model model = model_of_layers(4);
  model.settings.devices = {"Vulkan0"};
  EXPECT_THAT(planned_place(model, plan_of({{1, 5}}), some_table()).devices,
              testing::ElementsAre("Vulkan0"));
  model.settings.devices = {"Vulkan9"};  // in the host's memory, and no processor
  EXPECT_THAT(planned_place(model, plan_of({{0, 5}}), some_table()).devices,
              testing::ElementsAre("Vulkan9"));
}

TEST(WorkerCommand, M17_WithoutAPlanTheSettingsHold) {
  catalog::Model model = model_of_layers(4);
  model.settings.devices = {"GPU-2222", "CUDA7"};
  model.settings.gpu_layers = 2;
  const WorkerPlace place = planned_place(model, {}, some_table());
  EXPECT_THAT(place.devices, testing::ElementsAre("CUDA1", "CUDA7"));
  EXPECT_EQ(place.device_layers, 2U);
  model.parts = nullptr;  // nobody knows how many layers there are
  EXPECT_EQ(planned_place(model, plan_of({{2, 1}}), some_table()).device_layers, 2U);
}

TEST(WorkerCommand, L26_SandboxIsOffOnlyWhereTheModelSaysSo) {
  catalog::Model model;
  EXPECT_THAT(line_of(model), Not(HasSubstr("--sandbox")));
  model.settings.sandbox = "off";
  EXPECT_THAT(line_of(model), HasSubstr("--sandbox|off|"));
}

TEST(WorkerCommand, T90_WhatGoesWithTheModelReachesTheCommandLine) {
  catalog::Model model;
  for (const auto* const option : {"--adapter", "--draft", "--embeddings"}) {
    EXPECT_THAT(line_of(model), Not(HasSubstr(option)));
  }
  model.settings.adapters = {"/a.gguf", "/b=2.gguf"};
  model.settings.draft = "/d.gguf";
  model.settings.embeddings = true;
  EXPECT_THAT(line_of(model), HasSubstr("--adapter|/a.gguf=1|--adapter|/b=2.gguf=1|"));
  EXPECT_THAT(line_of(model), HasSubstr("--draft|/d.gguf|"));
  EXPECT_THAT(line_of(model), HasSubstr("--embeddings|"));
}

TEST(WorkerCommand, OnlyVulkanDevicesNeedALibraryPath) {
  const auto has_path = [](const catalog::ModelSettings& settings) {
    catalog::Model model;
    model.settings = settings;
    for (const std::string& variable : worker_environment(
             {"VK_DRIVER_FILES=/d.json", "LD_LIBRARY_PATH=/x"}, configured_place(model))) {
      EXPECT_NE(variable, "LD_LIBRARY_PATH=/x");
      if (variable.starts_with("LD_LIBRARY_PATH=")) return true;
    }
    return false;
  };
  catalog::ModelSettings settings;
  EXPECT_FALSE(has_path(settings));
  settings.devices = {"CUDA0"};
  EXPECT_FALSE(has_path(settings));
  settings.devices = {"CUDA0", "Vulkan0"};
  EXPECT_EQ(has_path(settings), BERTH_LLAMA_PRIVATE != 0);
  EXPECT_THAT(worker_environment({"VK_DRIVER_FILES=/d.json", "GGML_VK_VISIBLE_DEVICES=0"},
                                 {.devices = settings.devices}),
              testing::IsSupersetOf({"VK_DRIVER_FILES=/d.json", "GGML_VK_VISIBLE_DEVICES=0"}));
  settings.gpu_layers = 0;
  EXPECT_FALSE(has_path(settings));
}

TEST(WorkerCommand, L26_OnlyWhatADriverReadsIsHandedOn) {
  const auto kept = worker_environment({"CUDA_VISIBLE_DEVICES=1", "SECRET=x", "LD_PRELOAD=/x.so",
                                        "LD_LIBRARY_PATH=/x", "GGML_NO_BACKTRACE=0", "HOME=/root"},
                                       {});
  EXPECT_THAT(kept, Contains("CUDA_VISIBLE_DEVICES=1"));
  EXPECT_THAT(kept, Contains("GGML_NO_BACKTRACE=1"));
  EXPECT_THAT(kept, Not(Contains("GGML_NO_BACKTRACE=0")));
  for (const std::string& variable : kept) {
    EXPECT_THAT(variable, Not(HasSubstr("SECRET")));
    EXPECT_THAT(variable, Not(HasSubstr("LD_")));
  }
}

}  // namespace
}  // namespace berth
