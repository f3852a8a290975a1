#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace berth::worker {

// Tests with the software Vulkan device, which every machine can have: skipped where it is not
// installed. Each has a directory of its own.
class SoftwareDevice : public testing::Test {
 protected:
  void SetUp() override {
    constexpr std::string_view kPlugins = BERTH_GGML_BACKEND_DIR;
    const auto plugin = std::string(kPlugins) + "/libggml-vulkan.so";
    if (kDriver.empty() || ::access(plugin.c_str(), R_OK) != 0) {
      GTEST_SKIP() << "ggml's Vulkan backend and Mesa's software driver are not installed "
                      "(deploy/setup installs them)";
    }
    std::string pattern = "/tmp/berth-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override {
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }

  // Starts a program with the device. The variables are for that program only.
  static std::vector<std::string> with_device() {
    std::vector<std::string> command = {"/usr/bin/env", "VK_DRIVER_FILES=" + std::string(kDriver),
                                        "GGML_VK_VISIBLE_DEVICES=0"};
    if (BERTH_LLAMA_PRIVATE != 0) command.push_back("LD_LIBRARY_PATH=" BERTH_LLAMA_LIB_DIR);
    return command;
  }

  std::string directory_;

 private:
  static constexpr std::string_view kDriver = BERTH_VULKAN_SOFTWARE_ICD;
};

}  // namespace berth::worker
