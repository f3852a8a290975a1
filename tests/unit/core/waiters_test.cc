#include "supervisor/core/waiters.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace berth::core {
namespace {

using Push = WaiterQueue::Push;

TEST(Waiters, M13_FirstComeFirstServedWithPositions) {
  WaitingTotal total;
  WaiterQueue queue(256, total);
  for (const Ticket ticket : {7U, 8U, 9U}) EXPECT_EQ(queue.push(ticket), Push::kQueued);
  EXPECT_EQ(queue.position(7), 1U);
  EXPECT_EQ(queue.position(9), 3U);
  EXPECT_EQ(queue.pop(), 7U);
  EXPECT_EQ(queue.position(9), 2U);
  EXPECT_TRUE(queue.remove(8));
  EXPECT_FALSE(queue.remove(8));
  EXPECT_EQ(queue.position(9), 1U);
  EXPECT_FALSE(queue.position(8));
}

TEST(Waiters, M13_BoundedPerModelAndInAll) {
  WaitingTotal total{.limit = 3, .count = 0};
  WaiterQueue one(2, total);
  WaiterQueue other(2, total);
  EXPECT_EQ(one.push(1), Push::kQueued);
  EXPECT_EQ(one.push(2), Push::kQueued);
  EXPECT_EQ(one.push(3), Push::kModelFull);
  EXPECT_EQ(other.push(4), Push::kQueued);
  EXPECT_EQ(other.push(5), Push::kTotalFull);
  EXPECT_TRUE(one.remove(1));
  EXPECT_EQ(other.push(5), Push::kQueued);
}

TEST(Waiters, M13_WhoWaitsForEvidenceStillCounts) {
  WaitingTotal total;
  WaiterQueue queue(2, total);
  std::ignore = queue.push(1);
  std::ignore = queue.push(2);
  EXPECT_EQ(queue.detach_all(), (std::vector<Ticket>{1, 2}));
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.position(1));
  EXPECT_FALSE(queue.pop());
  EXPECT_EQ(queue.push(3), Push::kModelFull);
  EXPECT_TRUE(queue.remove(1));
  EXPECT_EQ(queue.push(3), Push::kQueued);
  EXPECT_EQ(total.count, 2U);
}

TEST(Waiters, M13_AQueueThatEndsGivesItsPlacesBack) {
  WaitingTotal total;
  {
    WaiterQueue queue(8, total);
    std::ignore = queue.push(1);
    std::ignore = queue.push(2);
    std::ignore = queue.detach_all();
    std::ignore = queue.push(3);
    EXPECT_EQ(total.count, 3U);
  }
  EXPECT_EQ(total.count, 0U);
}

TEST(Waiters, M13_TenantsTakeTurnsAndWithinOneTheOldestComesFirst) {
  WaitingTotal total;
  WaiterQueue queue(256, total);
  for (const Ticket ticket : {1U, 2U, 3U, 4U}) std::ignore = queue.push(ticket, "busy");
  for (const Ticket ticket : {5U, 6U}) std::ignore = queue.push(ticket, "other");
  std::ignore = queue.push(7, "third");
  const std::vector<Ticket> order = {1, 5, 7, 2, 6, 3, 4};
  EXPECT_EQ(queue.tickets(), order);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(queue.position(order[i]), i + 1);
  for (const Ticket ticket : order) {
    EXPECT_EQ(queue.position(ticket), 1U);
    EXPECT_EQ(queue.front(), ticket);
    EXPECT_EQ(queue.pop(), ticket);
  }
  EXPECT_TRUE(queue.empty());
}

TEST(Waiters, M13_ATenantThatComesAgainGainsNoTurn) {
  WaitingTotal total;
  WaiterQueue queue(256, total);
  for (const Ticket ticket : {1U, 2U, 3U}) std::ignore = queue.push(ticket, "patient");
  std::ignore = queue.push(4, "eager");
  EXPECT_EQ(queue.pop(), 1U);
  EXPECT_EQ(queue.pop(), 4U);
  std::ignore = queue.push(5, "eager");
  EXPECT_EQ(queue.pop(), 2U);
  EXPECT_EQ(queue.pop(), 5U);
  EXPECT_EQ(queue.pop(), 3U);
}

TEST(Waiters, M13_IdleWorkComesAfterAllClients) {
  WaitingTotal total;
  WaiterQueue queue(256, total);
  std::ignore = queue.push(1, {}, WaiterKind::kIdleWork);
  std::ignore = queue.push(2, "a");
  std::ignore = queue.push(3, "b");
  EXPECT_EQ(queue.clients(), 2U);
  EXPECT_EQ(queue.position(1), 3U);
  EXPECT_EQ(queue.tickets(), (std::vector<Ticket>{2, 3, 1}));
  EXPECT_TRUE(queue.remove(2));
  EXPECT_EQ(queue.pop(), 3U);
  EXPECT_EQ(queue.pop(), 1U);
  EXPECT_EQ(total.count, 0U);
}

RC_GTEST_PROP(WaitersProperty, M13_PositionsAreTheOrderOfService,
              (const std::vector<std::uint8_t>& steps)) {
  WaitingTotal total;
  WaiterQueue queue(256, total);
  Ticket next = 1;
  for (const std::uint8_t step : steps) {
    if (step % 4 == 3) {
      std::ignore = queue.pop();
    } else if (step % 8 == 6 && next > 1) {
      std::ignore = queue.remove(step % next);
    } else {
      const auto kind = step % 16 == 5 ? WaiterKind::kIdleWork : WaiterKind::kClient;
      std::ignore = queue.push(next++, std::string(1, static_cast<char>('a' + step / 64)), kind);
    }
    const std::vector<Ticket> order = queue.tickets();
    RC_ASSERT(order.size() == queue.size());
    RC_ASSERT(queue.front() == (order.empty() ? std::nullopt : std::optional(order.front())));
    for (std::size_t i = 0; i < order.size(); ++i) RC_ASSERT(queue.position(order[i]) == i + 1);
  }
  std::vector<Ticket> served;
  const std::vector<Ticket> order = queue.tickets();
  while (const auto ticket = queue.pop()) served.push_back(*ticket);
  RC_ASSERT(served == order);
}

// Against a plain list of (ticket, detached).
RC_GTEST_PROP(WaitersProperty, M13_BehavesLikeAList, (const std::vector<std::uint8_t>& steps)) {
  WaitingTotal total{.limit = 6, .count = 0};
  WaiterQueue queue(4, total);
  std::vector<Ticket> waiting;
  std::vector<Ticket> detached;
  Ticket next = 1;
  for (const std::uint8_t step : steps) {
    switch (step % 5) {
      case 0:
      case 1: {
        const bool room = waiting.size() + detached.size() < 4;
        RC_ASSERT((queue.push(next) == Push::kQueued) == room);
        if (room) waiting.push_back(next);
        ++next;
        break;
      }
      case 2: {
        const std::optional<Ticket> first = queue.pop();
        RC_ASSERT(first.has_value() == !waiting.empty());
        if (first) {
          RC_ASSERT(*first == waiting.front());
          waiting.erase(waiting.begin());
        }
        break;
      }
      case 3: {
        const Ticket ticket = 1 + step % next;
        const bool removed = std::erase(waiting, ticket) + std::erase(detached, ticket) > 0;
        RC_ASSERT(queue.remove(ticket) == removed);
        break;
      }
      default:
        RC_ASSERT(queue.detach_all() == waiting);
        detached.insert(detached.end(), waiting.begin(), waiting.end());
        waiting.clear();
    }
    RC_ASSERT(queue.tickets() == waiting);
    RC_ASSERT(queue.counted() == waiting.size() + detached.size());
    RC_ASSERT(total.count == queue.counted());
  }
}

}  // namespace
}  // namespace berth::core
