#include "worker/lanes/chunk_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "worker/lanes/draft_pace.h"

namespace berth::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(PromptSpeed, S2_AChunkIsWhatIsReadInATenthOfASecond) {
  PromptSpeed speed;
  speed.add(512, seconds(1));
  EXPECT_EQ(speed.chunk(2048), 51U);
}

TEST(PromptSpeed, S2_AChunkIsNeverBelow16NorAboveTheBatch) {
  PromptSpeed speed;
  EXPECT_EQ(speed.chunk(512), PromptSpeed::kLeastChunk) << "nothing is known yet";
  speed.add(10, seconds(10));
  EXPECT_EQ(speed.chunk(512), PromptSpeed::kLeastChunk);
  EXPECT_EQ(speed.chunk(8), 8U);
  PromptSpeed fast;
  fast.add(512, milliseconds(1));
  EXPECT_EQ(fast.chunk(512), 512U);
  PromptSpeed timeless;
  timeless.add(1, Duration{});
  EXPECT_EQ(timeless.chunk(512), 512U);
}

TEST(PromptSpeed, S2_OneSlowBatchIsForgotten) {
  PromptSpeed speed;
  for (int i = 0; i < 20; ++i) speed.add(100, milliseconds(100));
  EXPECT_NEAR(static_cast<double>(speed.chunk(512)), 100, 1);
  speed.add(100, seconds(1));
  EXPECT_LT(speed.chunk(512), 50U);
  for (int i = 0; i < 20; ++i) speed.add(100, milliseconds(100));
  EXPECT_GT(speed.chunk(512), 95U);
}

TEST(PromptSpeed, S2_BesideManyLanesTheChunkGrowsSlowlyAndNeverFalls) {
  PromptSpeed speed;
  for (int i = 0; i < 5; ++i) speed.raise(36, milliseconds(50));
  EXPECT_GT(speed.chunk(512), 40U);
  EXPECT_LE(speed.chunk(512), 50U) << "a quarter at a time";
  for (int i = 0; i < 20; ++i) speed.raise(36, milliseconds(50));
  EXPECT_NEAR(static_cast<double>(speed.chunk(512)), 72, 1);
  speed.raise(36, seconds(5));
  EXPECT_NEAR(static_cast<double>(speed.chunk(512)), 72, 1);
  PromptSpeed timeless;
  for (int i = 0; i < 50; ++i) timeless.raise(10, Duration{});
  EXPECT_EQ(timeless.chunk(512), 512U);
  PromptSpeed slow;
  slow.raise(10, seconds(10));
  EXPECT_EQ(slow.chunk(512), PromptSpeed::kLeastChunk);
}

std::size_t total(const std::vector<PromptShare>& prompts) {
  std::size_t sum = 0;
  for (const auto& one : prompts) sum += one.share;
  return sum;
}

TEST(ShareChunk, S2_TheShortestIsReadFirstAndAQuarterGoesToTheOldest) {
  std::vector<PromptShare> prompts = {{4000, 1}, {1000, 2}, {30, 3}, {70, 4}};
  share_chunk(prompts, 100);
  EXPECT_EQ(prompts[0].share, 25U);
  EXPECT_EQ(prompts[1].share, 0U);
  EXPECT_EQ(prompts[2].share, 30U);
  EXPECT_EQ(prompts[3].share, 45U);
}

TEST(ShareChunk, TakesNothingWhereThereIsNoRoom) {
  std::vector<PromptShare> prompts = {{4000, 1}};
  share_chunk(prompts, 0);
  EXPECT_EQ(prompts[0].share, 0U);
  share_chunk({}, 10);
}

RC_GTEST_PROP(ShareChunk, S2_AllOfTheChunkIsSharedAndTheOldestHasItsPart, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 20);
  std::vector<PromptShare> prompts;
  std::size_t unread = 0;
  for (std::size_t i = 0; i < count; ++i) {
    prompts.push_back(PromptShare{*rc::gen::inRange<std::size_t>(1, 500), i});
    unread += prompts.back().unread;
  }
  const auto chunk = *rc::gen::inRange<std::size_t>(0, 600);
  share_chunk(prompts, chunk);
  RC_ASSERT(total(prompts) == std::min(chunk, unread));
  for (const auto& one : prompts) RC_ASSERT(one.share <= one.unread);
  RC_ASSERT(prompts.front().share >= std::min(prompts.front().unread, chunk / 4));
}

// However many short prompts come after a long one.
RC_GTEST_PROP(ShareChunk, S2_AStreamOfShortPromptsHoldsUpNobodyForEver, ()) {
  const auto chunk = *rc::gen::inRange<std::size_t>(16, 200);
  std::vector<PromptShare> prompts = {{*rc::gen::inRange<std::size_t>(1, 4000), 0}};
  const auto needed = (prompts.front().unread + chunk / 4 - 1) / (chunk / 4);
  std::uint64_t order = 1;
  for (std::size_t batch = 0; batch < needed; ++batch) {
    for (int i = 0; i < 10; ++i) prompts.push_back(PromptShare{chunk, order++});
    share_chunk(prompts, chunk);
    for (auto& one : prompts) {
      one.unread -= one.share;
      one.share = 0;
    }
    if (prompts.front().order == 0 && prompts.front().unread == 0) return;
    std::erase_if(prompts, [](const PromptShare& one) { return one.unread == 0; });
  }
  RC_FAIL("the oldest prompt was not read in four times the chunks that it needs");
}

TEST(DraftPace, GrowsWhileAllIsRight) {
  DraftPace pace(8);
  EXPECT_EQ(pace.next(), 4U);
  pace.learn(4, 4);
  EXPECT_EQ(pace.next(), 8U);
  pace.learn(8, 8);
  EXPECT_EQ(pace.next(), 8U);
}

TEST(DraftPace, ABadDraftCostsLittle) {
  DraftPace pace(8);
  std::size_t wasted = 0;
  for (int token = 0; token < 10'000; ++token) {
    const auto proposed = pace.next();
    wasted += proposed;
    if (proposed > 0) pace.learn(proposed, 0);
  }
  EXPECT_LT(wasted, 60U);
  // And it is tried again: text that is easy to guess may come later.
  EXPECT_GT(wasted, 30U);
}

TEST(DraftPace, RecoversAfterBadTimes) {
  DraftPace pace(8);
  for (int token = 0; token < 5'000; ++token) {
    if (const auto proposed = pace.next(); proposed > 0) pace.learn(proposed, 0);
  }
  std::size_t best = 0;
  for (int token = 0; token < 300; ++token) {
    const auto proposed = pace.next();
    if (proposed > 0) pace.learn(proposed, proposed);
    best = std::max(best, proposed);
  }
  EXPECT_EQ(best, 8U);
}

TEST(DraftPace, ADraftWithoutAGuessIsAskedSeldom) {
  DraftPace pace(8);
  int asked = 0;
  for (int token = 0; token < 10'000; ++token) {
    if (pace.next() == 0) continue;
    ++asked;
    pace.learn(0, 0);
  }
  EXPECT_LT(asked, 60);
  EXPECT_GT(asked, 30);
}

TEST(DraftPace, WithoutADraftThereIsNone) {
  DraftPace pace(0);
  EXPECT_EQ(pace.next(), 0U);
}

}  // namespace
}  // namespace berth::worker
