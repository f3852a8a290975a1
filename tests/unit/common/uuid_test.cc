#include "common/uuid.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

namespace berth {
namespace {

using std::chrono::milliseconds;

TEST(Uuid, HasTheFormOfVersion7) {
  // The example of RFC 9562, appendix A.6.
  const Uuid id = Uuid::make(WallTime(milliseconds(0x017F22E279B0)), 0xCC3, 0x18C4DC0C0C07398FULL);
  EXPECT_EQ(id.to_string(), "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
}

TEST(Uuid, ParsesOnlyTheLongForm) {
  const std::string text = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
  EXPECT_EQ(Uuid::parse(text).to_string(), text);
  EXPECT_EQ(Uuid::parse("017F22E2-79B0-7CC3-98C4-DC0C0C07398F").to_string(), text);
  for (const std::string bad :
       {"", "017f22e2", "017f22e279b07cc398c4dc0c0c07398f", "017f22e2-79b0-7cc3-98c4-dc0c0c07398",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398ff", "017f22e2-79b0-7cc3-98c4_dc0c0c07398f",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398g", "{17f22e2-79b0-7cc3-98c4-dc0c0c07398f"}) {
    EXPECT_TRUE(Uuid::parse(bad).is_nil()) << bad;
  }
  EXPECT_TRUE(Uuid().is_nil());
}

RC_GTEST_PROP(Uuid, ReadsBackAndIsOrderedByTime,
              (std::uint32_t time, std::uint64_t high, std::uint64_t low)) {
  const Uuid id = Uuid::make(WallTime(milliseconds(time)), high, low);
  RC_ASSERT(Uuid::parse(id.to_string()) == id);
  RC_ASSERT(id.to_string().at(14) == '7');
  const Uuid later = Uuid::make(WallTime(milliseconds(std::int64_t{time} + 1)), low, high);
  RC_ASSERT(id < later);
  RC_ASSERT(id.to_string() < later.to_string());
}

TEST(SystemIdSource, IdsGrow) {
  SystemIdSource source;
  Uuid last = source.next();
  // More than the counter within one millisecond holds.
  for (int i = 0; i < 20'000; ++i) {
    const Uuid id = source.next();
    ASSERT_LT(last, id);
    last = id;
  }
}

TEST(SystemIdSource, IsThreadSafe) {
  SystemIdSource source;
  std::vector<std::vector<Uuid>> made(4);
  std::vector<std::thread> threads;
  threads.reserve(made.size());
  for (auto& ids : made) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2'000; ++i) ids.push_back(source.next());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<Uuid> all;
  for (const auto& ids : made) all.insert(ids.begin(), ids.end());
  EXPECT_EQ(all.size(), 8'000U);
}

}  // namespace
}  // namespace berth
