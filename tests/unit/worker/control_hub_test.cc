#include "worker/service/control_hub.h"

#include <gtest/gtest.h>

namespace berth::worker {
namespace {

// What the next stream is told, besides progress.
std::optional<v1::ControlEvent> told_next(ControlHub& hub) {
  bool closing = false;
  auto event = hub.next(closing);
  if (event && event->has_progress()) event = hub.next(closing);
  return event;
}

TEST(ControlHub, LoadFailedIsSaidAgainToANewStream) {
  ControlHub hub("", {});
  v1::LoadFailed failed;
  failed.set_class_("permanent");
  failed.set_reason("bad magic");
  hub.tell_load_failed(failed);
  for (int stream = 0; stream < 2; ++stream) {
    ASSERT_TRUE(hub.attach(nullptr));
    const auto event = told_next(hub);
    ASSERT_TRUE(event && event->has_load_failed());
    EXPECT_EQ(event->load_failed().reason(), "bad magic");
    EXPECT_FALSE(told_next(hub).has_value()) << "once on each stream";
  }
}

TEST(ControlHub, ReadyIsSaidAgainToANewStream) {
  ControlHub hub("", {});
  v1::Ready ready;
  ready.set_window(512);
  hub.tell_ready(ready);
  for (int stream = 0; stream < 2; ++stream) {
    ASSERT_TRUE(hub.attach(nullptr));
    const auto event = told_next(hub);
    ASSERT_TRUE(event && event->has_ready());
    EXPECT_EQ(event->ready().window(), 512U);
    EXPECT_FALSE(told_next(hub).has_value()) << "once on each stream";
  }
}

}  // namespace
}  // namespace berth::worker
