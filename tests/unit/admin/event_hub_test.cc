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
  auto watched =
      hub_.watch(101, [&](const EventHub::EventPtr& event) { seen.push_back(event->sequence); });
  ASSERT_EQ(watched.kept.size(), 1U);
  EXPECT_EQ(watched.kept.front()->sequence, 102U);
  emit("c");
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{103}));
  watched.subscription.reset();
  emit("d");
  EXPECT_EQ(seen.size(), 1U) << "told after it had stopped watching";
}

TEST_F(EventHubTest, WhatIsKeptIsBounded) {
  EXPECT_EQ(hub_.kept(0).oldest, 0U);
  for (std::size_t i = 0; i < EventHub::kKept + 10; ++i) emit("x");
  const auto kept = hub_.kept(0).kept;
  ASSERT_EQ(kept.size(), EventHub::kKept);
  EXPECT_EQ(kept.front()->sequence, 111U) << "the oldest go first";
  const EventHub::Watched newer = hub_.kept(kept.back()->sequence);
  EXPECT_TRUE(newer.kept.empty());
  EXPECT_EQ(newer.oldest, 111U) << "of all";
}

TEST_F(EventHubTest, PlacesAreBoundedInAllAndOfOneTenant) {
  std::vector<std::unique_ptr<EventHub::Place>> places;
  const auto take = [&](const std::string& tenant) {
    auto place = hub_.take_place(tenant);
    if (place) places.push_back(*std::move(place));
    return static_cast<bool>(place);
  };
  for (std::size_t i = 0; i < EventHub::kMostOfTenant; ++i) ASSERT_TRUE(take("a"));
  EXPECT_FALSE(take("a"));
  std::size_t others = 0;
  while (take("b" + std::to_string(others))) ++others;
  EXPECT_EQ(others, EventHub::kMostWatchers - EventHub::kMostOfTenant);
  places.clear();
  EXPECT_TRUE(take("a"));
}

}  // namespace
}  // namespace berth::admin
