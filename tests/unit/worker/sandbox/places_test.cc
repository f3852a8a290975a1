#include "worker/sandbox/places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "worker/sandbox/landlock.h"
#include "worker/sandbox/sandbox.h"

namespace berth::worker {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::uint64_t access_to(const std::vector<Grant>& grants, const std::string& path) {
  std::uint64_t access = 0;
  for (const auto& grant : grants) {
    if (grant.path == path) access |= grant.access;
  }
  return access;
}

class SandboxPlacesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/berth-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string make(const std::string& name, const std::string& text = "x") const {
    auto path = directory_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  std::string directory_;
};

TEST_F(SandboxPlacesTest, L26_AllFilesOfASplitModel) {
  const auto first = make("m-00001-of-00003.gguf");
  const auto second = make("m-00002-of-00003.gguf");
  const auto third = make("m-00003-of-00003.gguf");
  EXPECT_THAT(with_shards(first), ElementsAre(first, second, third));
  std::filesystem::remove(second);
  EXPECT_THAT(with_shards(first), ElementsAre(first));
  const auto plain = directory_ + "/m.gguf";
  EXPECT_THAT(with_shards(plain), ElementsAre(plain));
  EXPECT_THAT(with_shards("m.gguf"), ElementsAre("m.gguf"));
}

TEST_F(SandboxPlacesTest, LoaderIsThatOfTheProgram) {
  EXPECT_THAT(loader_of("/proc/self/exe"), HasSubstr("/ld-linux"));
  EXPECT_EQ(loader_of(directory_ + "/none"), "");
  EXPECT_EQ(loader_of(make("script", "#!/bin/sh\n")), "");
  EXPECT_EQ(loader_of(make("cut", std::string("\x7f") + "ELF\x02")), "");
}

TEST_F(SandboxPlacesTest, PathsAreSplitAtColons) {
  EXPECT_THAT(split_paths(nullptr), IsEmpty());
  EXPECT_THAT(split_paths(""), IsEmpty());
  EXPECT_THAT(split_paths("::"), IsEmpty());
  EXPECT_THAT(split_paths("/a"), ElementsAre("/a"));
  EXPECT_THAT(split_paths(":/a::/b:"), ElementsAre("/a", "/b"));
}

TEST_F(SandboxPlacesTest, L26_OnlyTheTemplateHelperIsExecutedAndOnlyGrantedFoldersAreWritten) {
  const auto model = make("m.gguf");
  SandboxPlaces places;
  places.models = {model};
  places.socket_directory = directory_;
  places.template_program = "/proc/self/exe";
  places.granted = {"/granted"};
  const auto grants = worker_grants(places);
  EXPECT_EQ(access_to(grants, model), FileAccess::kReadFile);
  EXPECT_EQ(access_to(grants, directory_), FileAccess::kRemoveFile);
  constexpr auto kRun = FileAccess::kExecute | FileAccess::kReadFile;
  EXPECT_EQ(access_to(grants, "/proc/self/exe"), kRun);
  EXPECT_EQ(access_to(grants, loader_of("/proc/self/exe")), kRun);
  EXPECT_EQ(access_to(grants, "/granted"), FileAccess::kKeepFiles);
  for (const auto& grant : grants) {
    if ((grant.access & FileAccess::kExecute) != 0) {
      EXPECT_EQ(grant.access, kRun) << grant.path;
      EXPECT_TRUE(grant.path == "/proc/self/exe" || grant.path == loader_of("/proc/self/exe"));
    }
    if ((grant.access & FileAccess::kWrite) != 0) {
      EXPECT_TRUE(grant.path == "/granted" || grant.path == "/dev/null") << grant.path;
    }
    EXPECT_THAT(grant.path, Not(HasSubstr("/dev/dri")));
  }
}

TEST_F(SandboxPlacesTest, L26_DeviceNodesOnlyForModelsWithADevice) {
  EXPECT_THAT(device_grants({}), IsEmpty());
  const auto library = make("libdriver.so");
  const auto driver = make("driver.json", "{\"ICD\": {\"library_path\" : \"" + library + "\"}}");
  const auto beside = make("beside.json", R"({"ICD": {"library_path": "./lib/x.so"}})");
  const auto by_name = make("name.json", R"({"ICD": {"library_path": "libx.so"}})");
  const auto broken = make("broken.json", R"({"ICD": {"library_path")");
  ::setenv("VK_DRIVER_FILES", (driver + ":" + beside + ":" + by_name + ":" + broken).c_str(), 1);
  ::setenv("MESA_SHADER_CACHE_DIR", (directory_ + "/cache").c_str(), 1);
  ::setenv("HOME", directory_.c_str(), 1);
  const auto grants = device_grants({"Vulkan0"});
  EXPECT_EQ(access_to(grants, "/dev/dri"), FileAccess::kDevice);
  EXPECT_EQ(access_to(grants, driver), FileAccess::kRead);
  EXPECT_EQ(access_to(grants, directory_), FileAccess::kRead);
  EXPECT_EQ(access_to(grants, directory_ + "/./lib"), FileAccess::kRead);
  EXPECT_EQ(access_to(grants, directory_ + "/cache/mesa_shader_cache"), FileAccess::kKeepFiles);
  EXPECT_TRUE(std::filesystem::is_directory(directory_ + "/cache/mesa_shader_cache"));
  EXPECT_THAT(device_grants({"CUDA0"}), Not(Contains(Field(&Grant::path, driver))));
  ::unsetenv("VK_DRIVER_FILES");
  ::unsetenv("MESA_SHADER_CACHE_DIR");
}

TEST(SandboxReportTest, L26_SaysWhatTheKernelHas) {
  SandboxReport report;
  EXPECT_FALSE(report.complete());
  EXPECT_EQ(report.json(),
            "{\"landlock\":0,\"parts\":{\"files\":false,\"truncation\":false,\"network\":false,"
            "\"device_control\":false,\"signals\":false,\"system_calls\":false},"
            "\"complete\":false}\n");
  EXPECT_THAT(report.missing(), HasSubstr("files (needs Linux 5.13 with Landlock), truncation"));
  report.landlock_version = 6;
  report.parts.fill(true);
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(report.missing(), "");
  report.parts.at(static_cast<std::size_t>(SandboxPart::kSignals)) = false;
  EXPECT_EQ(report.missing(), "signals (needs Linux 6.12)");
  const auto here = probe_sandbox();
  EXPECT_EQ(here.has(SandboxPart::kFiles), here.landlock_version > 0);
}

}  // namespace
}  // namespace berth::worker
