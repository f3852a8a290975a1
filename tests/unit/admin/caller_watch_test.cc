#include "supervisor/admin/caller_watch.h"

#include <gtest/gtest.h>

namespace berth::admin {
namespace {

TEST(CallerWatch, TellsOnceOfOneWhoIsRefused) {
  bool refuses = true;
  CallerWatch watch([&refuses](const core::Caller&) {
    return refuses ? Status(fail(Reason::kUnauthenticated, "gone")) : Status();
  });
  int told = 0;
  const auto on_refused = [&told](const Error& error) {
    EXPECT_EQ(error.reason, Reason::kUnauthenticated);
    ++told;
  };
  const auto at_once = watch.watch({}, on_refused);
  EXPECT_EQ(told, 1);
  watch.changed();
  EXPECT_EQ(told, 1) << "he is not asked about any more";
  refuses = false;
  const auto later = watch.watch({}, on_refused);
  auto went = watch.watch({}, on_refused);
  watch.changed();
  EXPECT_EQ(told, 1);
  went.reset();
  refuses = true;
  watch.changed();
  watch.changed();
  EXPECT_EQ(told, 2);
}

}  // namespace
}  // namespace berth::admin
