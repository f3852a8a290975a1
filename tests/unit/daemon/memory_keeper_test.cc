#include "supervisor/memory_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/sim_clock.h"
#include "tests/simulation/sim_events.h"

namespace berth {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

class FakeLister : public DeviceLister {
 public:
  explicit FakeLister(Clock& clock) : clock_(clock) {}

  void list(std::function<void(Devices)> done) override {
    ++lists;
    clock_.post([done = std::move(done), devices = devices] { done(devices); });
  }

  int lists = 0;
  Devices devices = std::vector<core::ListedDevice>();

 private:
  Clock& clock_;
};

class FakeProbe : public memory::DeviceProbe {
 public:
  explicit FakeProbe(Clock& clock) : clock_(clock) {}

  void read(std::function<void(Readings)> done) override {
    ++reads;
    clock_.post([done = std::move(done), readings = readings] { done(readings); });
  }

  int reads = 0;
  Readings readings = fail(Reason::kNotFound, "There is no driver.");

 private:
  Clock& clock_;
};

// A keeper of a machine that is made up, under simulated time.
class MemoryKeeperTest : public testing::Test {
 protected:
  MemoryKeeperTest() {
    host_.machine = memory::HostMemory{64 * kGiB, 54 * kGiB};
    host_.processes = {{10, 10, kGiB}};
    host_.stall = memory::StallShares{0, 0};
  }

  // A card with a worker of 8 GiB and 2 GiB of others.
  void add_card() {
    lister_.devices = std::vector<core::ListedDevice>{
        {"CUDA0", "GeForce", "0000:01:00.0", core::DeviceType::kGpu, 24 * kGiB, 23 * kGiB}};
    memory::DeviceReading reading;
    reading.uuid = "GPU-a";
    reading.pci = "00000000:01:00.0";
    reading.total = 24 * kGiB;
    reading.used = 10 * kGiB;
    reading.processes = {{20, 8 * kGiB}, {999, 2 * kGiB}};
    probe_.readings = std::vector<memory::DeviceReading>{reading};
    host_.processes.push_back({20, 20, 3 * kGiB});
  }
  memory::DeviceReading& card() { return probe_.readings->front(); }

  void make(bool with_start = true) {
    MemoryKeeper::Parts parts{
        .clock = clock_,
        .events = events_,
        .run_blocking =
            [this](std::function<void()> work) {
              if (hangs_) {
                hung_ = std::move(work);
              } else {
                clock_.post_from("pool", std::move(work));
              }
            },
        .lister = lister_,
        .probe = probe_,
        .read_host = [this] { return host_; },
        .budgets = budgets_,
        .charged = [this] { return charged_; },
        .on_changed = [this] { ++changes_; },
        .on_process =
            [this](pid_t child, core::DomainIndex domain, std::uint64_t bytes) {
              seen_[{child, domain}] = bytes;
            }};
    keeper_ = std::make_unique<MemoryKeeper>(std::move(parts));
    if (!with_start) return;
    keeper_->start([this] { started_ = true; });
    clock_.settle();
    EXPECT_TRUE(started_);
  }

  sim::SimClock clock_;
  sim::SimEvents events_{clock_};
  FakeLister lister_{clock_};
  FakeProbe probe_{clock_};
  memory::HostReading host_;
  core::BudgetConfig budgets_;
  std::vector<memory::ChargedProcess> charged_;
  bool hangs_ = false;  // what is to block does, from now on
  std::function<void()> hung_;
  bool started_ = false;
  int changes_ = 0;
  std::map<std::pair<pid_t, int>, std::uint64_t> seen_;
  std::unique_ptr<MemoryKeeper> keeper_;
};

TEST_F(MemoryKeeperTest, M1_AMachineWithoutDevicesHasTheHostAlone) {
  make();
  ASSERT_EQ(keeper_->domains().size(), 1U);
  EXPECT_EQ(keeper_->domains()[0].id, "host");
  EXPECT_EQ(keeper_->domains()[0].budget, 64 * kGiB / 10 * 6);
  EXPECT_EQ(keeper_->domains()[0].foreign, 9 * kGiB);
  EXPECT_THAT(keeper_->problems(), IsEmpty());
  ASSERT_NE(events_.last("memory.domains"), nullptr);
  EXPECT_EQ(events_.count("server.degraded"), 0U);
}

TEST_F(MemoryKeeperTest, M1_ADeviceIsNamedByItsUuidAndKnownByItsNameToo) {
  add_card();
  make();
  ASSERT_EQ(keeper_->domains().size(), 2U);
  EXPECT_EQ(keeper_->table().find("GPU-a"), 1);
  EXPECT_EQ(keeper_->table().by_device.at("CUDA0"), 1);
  EXPECT_EQ(keeper_->domains()[1].foreign, 2 * kGiB);
  EXPECT_EQ(keeper_->shown()[1].available, 14 * kGiB);
}

TEST_F(MemoryKeeperTest, M1_DevicesThatCannotBeListedAreSaidAndListedAgainWithAReload) {
  lister_.devices = fail(Reason::kDeadline, "It did not end within 5 s and was killed.");
  make();
  EXPECT_EQ(keeper_->domains().size(), 1U);
  EXPECT_THAT(keeper_->problems(), ElementsAre(HasSubstr("within 5 s")));
  clock_.advance(20s);
  EXPECT_EQ(events_.count("server.degraded"), 1U);
  add_card();
  keeper_->use(budgets_);
  clock_.settle();
  EXPECT_EQ(keeper_->domains().size(), 2U);
  EXPECT_THAT(keeper_->problems(), IsEmpty());
  EXPECT_EQ(lister_.lists, 2);
}

TEST_F(MemoryKeeperTest, M1_DevicesThatCannotBeListedAreListedAgainByAndBy) {
  lister_.devices = fail(Reason::kDeadline, "It did not end within 5 s and was killed.");
  make();
  clock_.advance(100s);
  EXPECT_EQ(lister_.lists, 4);
  EXPECT_EQ(events_.count("server.degraded"), 1U);
  add_card();
  clock_.advance(30s);
  EXPECT_EQ(keeper_->domains().size(), 2U);
  EXPECT_THAT(keeper_->problems(), IsEmpty());
  clock_.advance(100s);
  EXPECT_EQ(lister_.lists, 5);
}

TEST_F(MemoryKeeperTest, M1_AHostThatAnswersLateHasABudgetFromThenOn) {
  const auto machine = std::exchange(host_.machine, std::nullopt);
  make();
  host_.machine = machine;
  clock_.advance(2s);
  EXPECT_EQ(keeper_->domains()[0].total, 64 * kGiB);
  EXPECT_LT(keeper_->domains()[0].budget, 64 * kGiB);
  host_.machine.reset();
  keeper_->use(budgets_);
  clock_.advance(2s);
  EXPECT_EQ(keeper_->domains()[0].total, 64 * kGiB) << "one look that failed changes nothing";
}

TEST_F(MemoryKeeperTest, M1_WhatTheConfigurationAsksForAndIsNotThereIsSaidOnceEach) {
  budgets_.host = 100 * kGiB;
  budgets_.devices["GPU-b"].budget = kGiB;
  make();
  EXPECT_THAT(keeper_->problems(),
              ElementsAre(HasSubstr("memory.host_budget"), HasSubstr("GPU-b")));
  clock_.advance(5s);
  EXPECT_EQ(events_.count("server.degraded"), 2U);
}

TEST_F(MemoryKeeperTest, M1_AControlGroupBoundsTheHost) {
  host_.cgroup = memory::CgroupLimit{16 * kGiB, kGiB};
  make();
  EXPECT_EQ(keeper_->domains()[0].total, 16 * kGiB);
  EXPECT_EQ(keeper_->domains()[0].foreign, 0U);
  EXPECT_EQ(keeper_->shown()[0].available, 15 * kGiB);
}

TEST_F(MemoryKeeperTest, M1_AnotherBudgetHoldsAtOnceAndADeviceKeepsItsRow) {
  add_card();
  make();
  const int before = changes_;
  budgets_.host = 8 * kGiB;
  budgets_.devices["GPU-a"].budget = 5 * kGiB;
  keeper_->use(budgets_);
  EXPECT_EQ(keeper_->domains()[0].limit(), 8 * kGiB);
  EXPECT_EQ(keeper_->domains()[1].limit(), 5 * kGiB);
  EXPECT_GT(changes_, before);
  clock_.settle();
  EXPECT_EQ(keeper_->domains()[1].id, "GPU-a");
}

TEST_F(MemoryKeeperTest, T70_DevicesAreListedAgainAfterTheMachineSlept) {
  add_card();
  make();
  clock_.advance(5s);
  EXPECT_EQ(lister_.lists, 1);
  clock_.suspend(1h);
  lister_.devices = std::vector<core::ListedDevice>();
  probe_.readings = std::vector<memory::DeviceReading>();
  clock_.advance(2s);
  EXPECT_EQ(lister_.lists, 2);
  ASSERT_EQ(keeper_->domains().size(), 2U);
  EXPECT_TRUE(keeper_->domains()[1].lost);
  EXPECT_THAT(keeper_->problems(), ElementsAre(HasSubstr("GPU-a is not there")));
}

TEST_F(MemoryKeeperTest, M3_ForeignUseThatComesAndGoesIsSeenWithinASecond) {
  make();
  const int before = changes_;
  clock_.advance(5s);
  EXPECT_EQ(changes_, before);  // nothing new, nobody is told
  host_.machine->available -= 20 * kGiB;
  clock_.advance(1s);
  EXPECT_EQ(keeper_->domains()[0].foreign, 29 * kGiB);
  EXPECT_EQ(changes_, before + 1);
  // What our processes take is not foreign.
  host_.machine->available -= 10 * kGiB;
  host_.processes.push_back({20, 20, 10 * kGiB});
  clock_.advance(1s);
  EXPECT_EQ(keeper_->domains()[0].foreign, 29 * kGiB);
  EXPECT_EQ(changes_, before + 1);
}

TEST_F(MemoryKeeperTest, S18_WithoutStallsFromTheKernelItLooksEveryTenSeconds) {
  host_.stall.reset();
  make();
  host_.machine->available -= 20 * kGiB;
  clock_.advance(9s);
  EXPECT_EQ(keeper_->domains()[0].foreign, 9 * kGiB);
  clock_.advance(1s);
  EXPECT_EQ(keeper_->domains()[0].foreign, 29 * kGiB);
}

TEST_F(MemoryKeeperTest, M10_ASampleOnDemandIsNewerThanTheQuestion) {
  host_.stall.reset();
  make();
  const residency::MemoryAccess access = keeper_->access();
  clock_.advance(1s);
  host_.machine->available -= 20 * kGiB;
  std::uint64_t foreign = 0;
  access.sample([&] { foreign = access.domains()[0].foreign; });
  EXPECT_EQ(foreign, 0U);  // never from within the call
  // Asked while one is under way: that may have looked too early.
  std::uint64_t later = 0;
  clock_.run_one();
  host_.machine->available -= 2 * kGiB;
  access.sample([&] { later = access.domains()[0].foreign; });
  clock_.settle();
  EXPECT_GE(foreign, 29 * kGiB);
  EXPECT_EQ(later, 31 * kGiB);
}

TEST_F(MemoryKeeperTest, M2_AHostThatDoesNotAnswerHoldsUpNothing) {
  make();
  hangs_ = true;
  bool answered = false;
  keeper_->access().sample([&] { answered = true; });
  clock_.advance(4s);
  EXPECT_TRUE(answered);
  EXPECT_EQ(keeper_->domains()[0].foreign, 9 * kGiB);
  answered = false;
  keeper_->access().sample([&] { answered = true; });
  clock_.settle();
  EXPECT_TRUE(answered);  // the look that is out is not waited for again
}

TEST_F(MemoryKeeperTest, M3_AHostThatDoesNotAnswerForLongIsSaidUntilItDoes) {
  make();
  hangs_ = true;
  clock_.advance(9s);
  EXPECT_THAT(keeper_->problems(), IsEmpty());
  clock_.advance(20s);
  EXPECT_THAT(keeper_->problems(), ElementsAre(HasSubstr("the kernel does not answer")));
  EXPECT_EQ(events_.count("memory.silent"), 1U);
  EXPECT_EQ(sim::SimEvents::field(*events_.last("memory.silent"), "source"), "host");
  EXPECT_EQ(keeper_->domains()[0].foreign, 9 * kGiB);
  EXPECT_EQ(events_.count("memory.heard"), 0U);
  ASSERT_TRUE(hung_);
  hangs_ = false;
  clock_.post_from("pool", std::exchange(hung_, nullptr));
  clock_.advance(1s);
  EXPECT_THAT(keeper_->problems(), IsEmpty());
  EXPECT_EQ(events_.count("memory.heard"), 1U);
}

TEST_F(MemoryKeeperTest, M3_AHostThatCannotBeReadForLongIsSaid) {
  make();
  const auto machine = std::exchange(host_.machine, std::nullopt);
  clock_.advance(9s);
  EXPECT_THAT(keeper_->problems(), IsEmpty());
  clock_.advance(2s);
  EXPECT_THAT(keeper_->problems(), ElementsAre(HasSubstr("/proc/meminfo cannot be read")));
  host_.machine = machine;
  clock_.advance(1s);
  EXPECT_THAT(keeper_->problems(), IsEmpty());
}

TEST_F(MemoryKeeperTest, M10_TheDriverSaysWhatAProcessHoldsOfADevice) {
  add_card();
  host_.processes.push_back({30, 30, 0});
  host_.processes.push_back({31, 30, 0});  // a command's program
  card().used = 15 * kGiB;
  card().processes->push_back({31, 5 * kGiB});
  make();
  const auto use = keeper_->access().device_use(20);
  ASSERT_EQ(use.size(), 1U);
  EXPECT_EQ(use[0], (residency::DeviceUse{1, 10 * kGiB, 8 * kGiB}));
  EXPECT_EQ(keeper_->access().device_use(30)[0].of_process, 5 * kGiB);
  EXPECT_EQ((seen_[{20, 1}]), 8 * kGiB);
  EXPECT_EQ((seen_[{20, 0}]), 3 * kGiB);
  EXPECT_EQ((seen_[{30, 1}]), 5 * kGiB);
}

TEST_F(MemoryKeeperTest, M10_WithoutOwnersThereIsNoFigureOfADevice) {
  add_card();
  card().processes.reset();
  make();
  EXPECT_THAT(keeper_->access().device_use(20), IsEmpty());
}

TEST_F(MemoryKeeperTest, T67_ADriverThatHangsLosesItsDevicesAloneAndOnlyForThatLong) {
  add_card();
  charged_ = {{20, core::DomainBytes::in(1, 8 * kGiB), false}};
  make();
  const auto readings = std::exchange(
      probe_.readings, fail(Reason::kDeadline, "The driver of the devices does not answer."));
  clock_.advance(9s);
  EXPECT_FALSE(keeper_->domains()[1].lost);
  clock_.advance(3s);
  EXPECT_TRUE(keeper_->domains()[1].lost);
  EXPECT_GT(keeper_->domains()[0].limit(), 0U);
  EXPECT_THAT(keeper_->problems(), testing::Contains(HasSubstr("does not answer")));
  EXPECT_EQ(sim::SimEvents::field(*events_.last("memory.silent"), "source"), "driver");
  probe_.readings = readings;
  clock_.advance(1s);
  EXPECT_FALSE(keeper_->domains()[1].lost);
  EXPECT_THAT(keeper_->problems(), IsEmpty());
  EXPECT_EQ(events_.count("memory.silent"), 1U);
  EXPECT_EQ(events_.count("memory.heard"), 1U);
}

TEST_F(MemoryKeeperTest, T74_ADriverIsSeldomAskedWhileNothingOfOursIsThere) {
  add_card();
  make();
  const int before = probe_.reads;
  clock_.advance(20s);
  EXPECT_LE(probe_.reads, before + 2);
  charged_ = {{20, core::DomainBytes::in(1, 8 * kGiB), false}};
  clock_.advance(20s);
  EXPECT_GE(probe_.reads, before + 20);
}

TEST_F(MemoryKeeperTest, M2_WithoutADriverNoneIsAskedUntilDevicesAreListedAgain) {
  make();
  const int before = probe_.reads;
  clock_.advance(60s);
  EXPECT_EQ(probe_.reads, before);
  add_card();
  keeper_->use(budgets_);
  clock_.settle();
  EXPECT_EQ(keeper_->table().find("GPU-a"), 1);
}

TEST_F(MemoryKeeperTest, M2_ALibraryWithoutADriverIsNoProblemOfAMachineWithoutItsDevices) {
  probe_.readings = fail(Reason::kInternal, "The driver is not loaded.");
  make();
  EXPECT_THAT(keeper_->problems(), IsEmpty());
  EXPECT_EQ(events_.count("server.degraded"), 0U);
}

TEST_F(MemoryKeeperTest, M1_ADriverThatAnswersLateGivesTheDeviceItsId) {
  add_card();
  const auto readings =
      std::exchange(probe_.readings, fail(Reason::kDeadline, "It does not answer."));
  make();
  EXPECT_EQ(keeper_->domains()[1].id, "CUDA:GeForce");
  EXPECT_THAT(keeper_->problems(), ElementsAre(HasSubstr("is not known")));
  probe_.readings = readings;
  clock_.advance(12s);
  ASSERT_EQ(keeper_->domains().size(), 2U);
  EXPECT_EQ(keeper_->domains()[1].id, "GPU-a");
  EXPECT_THAT(keeper_->problems(), IsEmpty());
}

TEST_F(MemoryKeeperTest, M3_OfADeviceWithoutADriverOfOursTheListTellsWhatOthersUse) {
  lister_.devices = std::vector<core::ListedDevice>{
      {"ROCm0", "Radeon", "0000:01:00.0", core::DeviceType::kGpu, 16 * kGiB, 13 * kGiB}};
  make();
  EXPECT_EQ(keeper_->domains()[1].foreign, 3 * kGiB);
  // Listed again with a worker there: what it is charged is not foreign.
  lister_.devices->front().free = 4 * kGiB;
  charged_ = {{20, core::DomainBytes::in(1, 8 * kGiB), false}};
  keeper_->use(budgets_);
  clock_.settle();
  EXPECT_EQ(keeper_->domains()[1].foreign, 4 * kGiB);
}

TEST_F(MemoryKeeperTest, S18_AnotherLevelIsAnEventAndReachesThePlanner) {
  make();
  const residency::MemoryAccess access = keeper_->access();
  EXPECT_FALSE(access.critical_pressure());
  host_.stall = memory::StallShares{40, 15};
  host_.machine->available = kGiB;
  clock_.advance(1s);
  EXPECT_TRUE(access.critical_pressure());
  EXPECT_EQ(keeper_->pressure().level, core::PressureLevel::kCritical);
  const Event* const event = events_.last("memory.pressure");
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(sim::SimEvents::field(*event, "now"), "critical");
  EXPECT_EQ(sim::SimEvents::field(*event, "source"), "foreign");
  EXPECT_THAT(sim::SimEvents::field(*event, "evidence"), HasSubstr("stall_and_available"));
  clock_.advance(10s);
  EXPECT_EQ(events_.count("memory.pressure"), 1U);
  host_.stall = memory::StallShares{0, 0};
  host_.machine->available = 50 * kGiB;
  clock_.advance(1s);
  EXPECT_FALSE(access.critical_pressure());
  EXPECT_EQ(events_.count("memory.pressure"), 2U);
}

TEST_F(MemoryKeeperTest, S18_MemoryThatWasRefusedIsCriticalOnce) {
  make();
  keeper_->note_allocation_failure();
  clock_.advance(1s);
  EXPECT_EQ(keeper_->pressure().level, core::PressureLevel::kCritical);
  EXPECT_EQ(keeper_->pressure().source, core::PressureSource::kSelf);
  clock_.advance(1s);
  EXPECT_EQ(keeper_->pressure().level, core::PressureLevel::kNormal);
}

TEST_F(MemoryKeeperTest, S18_ARefusalIsJudgedOnceAlsoWhereDevicesAreListed) {
  make();
  clock_.advance(1s);
  keeper_->use(budgets_);  // begins a round that ends with another look at the same figures
  keeper_->note_allocation_failure();
  clock_.settle();
  EXPECT_EQ(keeper_->pressure().level, core::PressureLevel::kCritical);
  EXPECT_EQ(events_.count("memory.pressure"), 1U);
  clock_.advance(1s);
  EXPECT_EQ(keeper_->pressure().level, core::PressureLevel::kNormal);
}

TEST_F(MemoryKeeperTest, M1_TheDomainsAreToldOnlyWhereTheyAreOthers) {
  lister_.devices = std::vector<core::ListedDevice>{
      {"ROCm0", "Radeon", "0000:01:00.0", core::DeviceType::kGpu, 16 * kGiB, 13 * kGiB}};
  make();
  EXPECT_EQ(events_.count("memory.domains"), 1U);
  lister_.devices->front().free = 9 * kGiB;  // others use more of it
  keeper_->use(budgets_);
  clock_.settle();
  EXPECT_EQ(keeper_->domains()[1].foreign, 7 * kGiB);
  EXPECT_EQ(events_.count("memory.domains"), 1U);
  budgets_.host = 8 * kGiB;
  keeper_->use(budgets_);
  clock_.settle();
  EXPECT_EQ(events_.count("memory.domains"), 2U);
}

TEST_F(MemoryKeeperTest, NoAnswerComesAfterItsEnd) {
  make(false);
  keeper_->start([this] { started_ = true; });
  keeper_.reset();
  clock_.settle();
  clock_.advance(20s);
  EXPECT_FALSE(started_);
}

}  // namespace
}  // namespace berth
