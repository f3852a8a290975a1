#include "supervisor/core/waiting_bytes.h"

#include <gtest/gtest.h>

#include <optional>

#include "supervisor/core/generation.h"

namespace berth::core {
namespace {

constexpr std::uint64_t kMiB = 1U << 20;

TEST(WaitingBytes, ATenantGetsHalf) {
  WaitingBytes waiting(8 * kMiB);
  std::optional<Result<HeldBytes>> first = waiting.take("a", 3 * kMiB);
  ASSERT_TRUE(*first);
  const auto refused = waiting.take("a", 2 * kMiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, Reason::kQueueFull);
  EXPECT_TRUE(refused.error().extras->retry_after_seconds);
  const auto other = waiting.take("b", 4 * kMiB);
  EXPECT_TRUE(other);
  EXPECT_FALSE(waiting.take("c", 2 * kMiB)) << "all of it is taken";
  first.reset();
  EXPECT_TRUE(waiting.take("a", 4 * kMiB));
}

TEST(WaitingBytes, SmallOnesAreNotCounted) {
  WaitingBytes waiting(0);
  EXPECT_TRUE(waiting.take("a", WaitingBytes::kSmall));
  EXPECT_FALSE(waiting.take("a", WaitingBytes::kSmall + 1));
}

TEST(WaitingBytes, TokensAndTextsHaveTheirSize) {
  GenerateRequest request;
  request.input = TokenInput{{1, 2, 3}};
  EXPECT_EQ(bytes_of(request), 12U);
  request.input = ChatInput{.messages_json = "[]", .tools_json = "[1]"};
  request.format = GrammarFormat{"root"};
  EXPECT_EQ(bytes_of(request), 9U);
}

}  // namespace
}  // namespace berth::core
