#include "worker/service/heart.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace berth::worker {
namespace {

TEST(Heart, L9_TheLastWordIsTheNewest) {
  std::atomic<std::uint64_t> progress{0};
  std::uint64_t last = 0;  // told; the heart's lock guards it
  std::uint64_t stale = 0;
  Heart heart(
      [&progress] {
        v1::Heartbeat beat;
        beat.set_progress(++progress);
        std::this_thread::yield();
        return beat;
      },
      [&](const v1::Heartbeat& beat) {
        if (beat.progress() != last + 1) ++stale;
        last = beat.progress();
      });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&heart] {
      for (int beats = 0; beats < 5000; ++beats) heart.beat();
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(stale, 0U);
  EXPECT_EQ(last, 20'000U);
}

}  // namespace
}  // namespace berth::worker
