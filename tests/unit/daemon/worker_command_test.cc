#include "supervisor/worker_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "supervisor/process/unix_socket.h"

namespace berth {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const Uuid kInstance = Uuid::make(WallTime{std::chrono::milliseconds(1)}, 2, 3);

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
  std::string line;
  for (const std::string& word : worker_arguments("/bin/w", model, kInstance, "/s")) {
    line += word + "|";
  }
  EXPECT_THAT(line, HasSubstr("--model|/m/a b.gguf|"));
  EXPECT_THAT(line, HasSubstr("--context|2048|"));
  EXPECT_THAT(line, HasSubstr("--sequences|2|"));
  EXPECT_THAT(line, HasSubstr("--threads|3|"));
  EXPECT_THAT(line, HasSubstr("--batch|256|"));
  EXPECT_THAT(line, HasSubstr("--kv-type|q8_0|"));
  EXPECT_THAT(line, HasSubstr("--chat-template|/t.jinja|"));
  EXPECT_THAT(line, HasSubstr("--socket|/s|"));
}

std::string line_of(const catalog::Model& model) {
  std::string line;
  for (const std::string& word : worker_arguments("/bin/w", model, kInstance, "/s")) {
    line += word + "|";
  }
  return line;
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
    for (const std::string& variable :
         worker_environment({"VK_DRIVER_FILES=/d.json", "LD_LIBRARY_PATH=/x"}, settings)) {
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
  EXPECT_THAT(
      worker_environment({"VK_DRIVER_FILES=/d.json", "GGML_VK_VISIBLE_DEVICES=0"}, settings),
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
