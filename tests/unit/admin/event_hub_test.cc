#include "supervisor/admin/event_hub.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/simulation/sim_clock.h"

namespace berth::admin {
namespace {

class EventHubTest : public testing::Test {
 protected:
  void emit(const std::string& model) { hub_.emit_typed(events::LoadStarted{.model = model}); }

  sim::SimClock clock_;
  EventHub hub_{clock_, 100};
};

TEST_F(EventHubTest, NumbersGoOnWhereTheyEnded) {
  std::vector<std::uint64_t> seen;
  hub_.add_outlet([&](const Event& event) { seen.push_back(event.sequence); });
  emit("a");
  emit("b");
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{101, 102}));
}

TEST_F(EventHubTest, AWatcherGetsWhatIsKeptAndThenWhatComes) {
  emit("a");
  emit("b");
  std::vector<std::uint64_t> seen;
  auto watching = hub_.subscribe(101, /*watch=*/true,
                                 [&](const Event& event) { seen.push_back(event.sequence); });
  emit("c");
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{102, 103}));
  watching.reset();
  emit("d");
  EXPECT_EQ(seen.size(), 2U) << "told after it had stopped watching";
}

TEST_F(EventHubTest, WhatIsKeptIsBounded) {
  for (std::size_t i = 0; i < EventHub::kKept + 10; ++i) emit("x");
  std::size_t kept = 0;
  std::uint64_t first = 0;
  EXPECT_EQ(hub_.subscribe(0, /*watch=*/false,
                           [&](const Event& event) {
                             if (kept++ == 0) first = event.sequence;
                           }),
            nullptr);
  EXPECT_EQ(kept, EventHub::kKept);
  EXPECT_EQ(first, 111U) << "the oldest go first";
}

}  // namespace
}  // namespace berth::admin
