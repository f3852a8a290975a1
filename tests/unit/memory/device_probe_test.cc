#include "supervisor/memory/device_probe.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "supervisor/process/asio_clock.h"
#include "tests/unit/process/loop.h"

namespace berth::memory {
namespace {

using namespace std::chrono_literals;
using Readings = DeviceProbe::Readings;

struct Loop {
  boost::asio::io_context io;
  process::AsioClock clock{io};

  bool run_until(const std::function<bool()>& done) { return testing::run_until(io, done); }
};

// A driver that hangs until it is let go.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

ThreadedDeviceProbe::Read one_device() {
  return []() -> Readings {
    DeviceReading reading;
    reading.uuid = "GPU-1";
    return std::vector<DeviceReading>{reading};
  };
}

// One that is read as soon as the gate is open.
std::function<Result<ThreadedDeviceProbe::Read>()> behind(const std::shared_ptr<Gate>& gate) {
  return [gate]() -> Result<ThreadedDeviceProbe::Read> {
    return ThreadedDeviceProbe::Read([gate]() -> Readings {
      gate->pass();
      return one_device()();
    });
  };
}

TEST(DeviceProbe, M2_AnswersOnTheCoreStrand) {
  Loop loop;
  ThreadedDeviceProbe probe(loop.clock,
                            []() -> Result<ThreadedDeviceProbe::Read> { return one_device(); });
  std::optional<Readings> answer;
  probe.read([&](Readings readings) { answer = std::move(readings); });
  EXPECT_FALSE(answer);
  ASSERT_TRUE(loop.run_until([&] { return answer.has_value(); }));
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->front().uuid, "GPU-1");
}

TEST(DeviceProbe, M2_ADriverThatHangsCostsADeadlineAndNothingElse) {
  Loop loop;
  const auto gate = std::make_shared<Gate>();
  ThreadedDeviceProbe probe(loop.clock, behind(gate), 1ms);
  std::optional<Readings> first;
  probe.read([&](Readings readings) { first = std::move(readings); });
  ASSERT_TRUE(loop.run_until([&] { return first.has_value(); }));
  ASSERT_FALSE(*first);
  EXPECT_EQ(first->error().reason, Reason::kDeadline);

  // As long as it hangs nobody waits for it.
  std::optional<Readings> second;
  probe.read([&](Readings readings) { second = std::move(readings); });
  ASSERT_TRUE(loop.run_until([&] { return second.has_value(); }));
  EXPECT_EQ(second->error().reason, Reason::kDeadline);
  EXPECT_NE(second->error().message.find("has not answered for"), std::string::npos);

  gate->open();
  std::optional<Readings> third;
  ASSERT_TRUE(loop.run_until([&] {
    if (third && *third) return true;
    third.reset();
    probe.read([&](Readings readings) { third = std::move(readings); });
    return false;
  }));
}

TEST(DeviceProbe, WhoAskWhileAReadIsOutShareItsAnswer) {
  Loop loop;
  const auto gate = std::make_shared<Gate>();
  const auto reads = std::make_shared<int>(0);
  ThreadedDeviceProbe probe(
      loop.clock,
      [gate, reads]() -> Result<ThreadedDeviceProbe::Read> {
        return ThreadedDeviceProbe::Read([gate, reads]() -> Readings {
          gate->pass();
          ++*reads;
          return one_device()();
        });
      },
      1h);
  int answers = 0;
  for (int i = 0; i < 3; ++i) probe.read([&](const Readings&) { ++answers; });
  gate->open();
  ASSERT_TRUE(loop.run_until([&] { return answers == 3; }));
  EXPECT_EQ(*reads, 1);
}

TEST(DeviceProbe, WhatCannotBeOpenedIsTriedAgainAtTheNextRead) {
  Loop loop;
  const auto attempts = std::make_shared<int>(0);
  ThreadedDeviceProbe probe(loop.clock, [attempts]() -> Result<ThreadedDeviceProbe::Read> {
    if (++*attempts == 1) return fail(Reason::kNotFound, "There is no driver.");
    return one_device();
  });
  std::vector<Readings> answers;
  probe.read([&](Readings readings) { answers.push_back(std::move(readings)); });
  ASSERT_TRUE(loop.run_until([&] { return answers.size() == 1; }));
  EXPECT_EQ(answers[0].error().reason, Reason::kNotFound);
  probe.read([&](Readings readings) { answers.push_back(std::move(readings)); });
  ASSERT_TRUE(loop.run_until([&] { return answers.size() == 2; }));
  EXPECT_TRUE(answers[1]);
}

TEST(DeviceProbe, NoAnswerComesAfterItsEnd) {
  Loop loop;
  const auto gate = std::make_shared<Gate>();
  int answers = 0;
  {
    ThreadedDeviceProbe probe(loop.clock, behind(gate), 1ms);
    probe.read([&](const Readings&) { ++answers; });
  }
  gate->open();
  bool passed = false;
  const Timer later = loop.clock.sleep_for(20ms, [&] { passed = true; });
  ASSERT_TRUE(loop.run_until([&] { return passed; }));
  EXPECT_EQ(answers, 0);
}

}  // namespace
}  // namespace berth::memory
