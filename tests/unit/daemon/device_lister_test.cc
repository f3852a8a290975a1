#include "supervisor/device_lister.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <fstream>
#include <optional>
#include <string>

#include "supervisor/fd_wait.h"
#include "supervisor/process/asio_clock.h"
#include "supervisor/process/proc.h"
#include "supervisor/process/process_launcher.h"
#include "tests/unit/common/temp_dir.h"

namespace berth {
namespace {

using testing::HasSubstr;

// Programs of a line or two in place of berth-worker.
class DeviceListerTest : public testing::Test {
 protected:
  DeviceLister::Devices list(const std::string& script) {
    const std::string program = dir_.file("worker");
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    EXPECT_EQ(::chmod(program.c_str(), 0700), 0);
    WorkerDeviceLister lister({.clock = clock_,
                               .launcher = launcher_,
                               .on_readable = readable_on(io_),
                               .program = program,
                               .environment = {"PATH=/usr/bin:/bin", "GIVEN=yes"}});
    std::optional<DeviceLister::Devices> listed;
    lister.list([&](DeviceLister::Devices devices) { listed = std::move(devices); });
    EXPECT_FALSE(listed);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    // Until its process is gone, too.
    while ((!listed || !process::children_of(::getpid()).empty()) &&
           std::chrono::steady_clock::now() < until) {
      io_.restart();
      io_.run_for(std::chrono::milliseconds(20));
    }
    EXPECT_TRUE(listed);
    return listed.value_or(fail(Reason::kInternal, "No answer."));
  }

  test::TempDir dir_;
  boost::asio::io_context io_{1};
  process::AsioClock clock_{io_};
  process::RealLauncher launcher_{io_};
};

TEST_F(DeviceListerTest, M1_TheListIsFoundBesideWhatTheBackendsSay) {
  const auto devices = list(
      "echo ggml_vulkan: Found 1 Vulkan devices >&2\n"
      "[ \"$1\" = --devices ] && [ \"$GIVEN\" = yes ] && "
      "echo '{\"devices\":[{\"name\":\"CUDA0\",\"type\":\"gpu\",\"total_bytes\":7}]}'");
  ASSERT_TRUE(devices) << devices.error().message;
  ASSERT_EQ(devices->size(), 1U);
  EXPECT_EQ(devices->front().name, "CUDA0");
}

TEST_F(DeviceListerTest, M1_AWorkerThatFailsIsQuoted) {
  const auto devices = list("echo libcuda is missing >&2; exit 3");
  ASSERT_FALSE(devices);
  EXPECT_THAT(devices.error().message, HasSubstr("exit 3"));
  EXPECT_THAT(devices.error().message, HasSubstr("libcuda is missing"));
}

TEST_F(DeviceListerTest, M1_AWorkerThatHangsIsKilledAfterFiveSeconds) {
  const auto devices = list("exec sleep 600");
  ASSERT_FALSE(devices);
  EXPECT_EQ(devices.error().reason, Reason::kDeadline);
}

TEST_F(DeviceListerTest, M1_AWorkerThatPrintsWithoutEndIsStopped) {
  const auto devices = list("yes");
  ASSERT_FALSE(devices);
  EXPECT_LT(devices.error().message.size(), 1000U);
}

TEST_F(DeviceListerTest, M1_AnotherListMayBeAskedForFromWithinTheAnswer) {
  const std::string program = dir_.file("worker");
  std::ofstream(program) << "#!/bin/sh\necho '{\"devices\":[]}'\n";
  ASSERT_EQ(::chmod(program.c_str(), 0700), 0);
  WorkerDeviceLister lister({.clock = clock_,
                             .launcher = launcher_,
                             .on_readable = readable_on(io_),
                             .program = program,
                             .environment = {"PATH=/usr/bin:/bin"}});
  std::optional<DeviceLister::Devices> second;
  lister.list([&](const DeviceLister::Devices& first) {
    EXPECT_TRUE(first);
    lister.list([&](DeviceLister::Devices devices) { second = std::move(devices); });
  });
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!second && std::chrono::steady_clock::now() < until) {
    io_.restart();
    io_.run_for(std::chrono::milliseconds(20));
  }
  ASSERT_TRUE(second);
  EXPECT_TRUE(*second) << second->error().message;
}

TEST_F(DeviceListerTest, AWorkerThatIsNotThereIsAnError) {
  WorkerDeviceLister lister({.clock = clock_,
                             .launcher = launcher_,
                             .on_readable = readable_on(io_),
                             .program = "/nonexistent/berth-worker",
                             .environment = {}});
  std::optional<DeviceLister::Devices> listed;
  lister.list([&](DeviceLister::Devices devices) { listed = std::move(devices); });
  io_.run();
  ASSERT_TRUE(listed);
  EXPECT_THAT(listed->error().message, HasSubstr("No such file"));
}

}  // namespace
}  // namespace berth
