#include "worker/lanes/thread_pace.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace berth::worker {

void ThreadPace::grant(std::uint32_t threads) {
  granted_ = std::max<std::uint32_t>(1, threads);
  threads_ = granted_;
  delay_before_.reset();
  try_after_ = kFirstTry;
  trying_ = false;
}

std::optional<std::uint32_t> ThreadPace::add(SteadyTime began, SteadyTime ended) {
  if (granted_ == 1 || !delay_) return std::nullopt;
  if (!delay_before_) {
    begin_window(delay_());
    return std::nullopt;
  }
  computed_ += ended - began;
  const auto seconds = std::chrono::duration<double>(computed_).count();
  if (seconds < kWindowSeconds) return std::nullopt;

  const auto before = threads_;
  const auto delay = delay_();
  if (delay) {
    // A thread that ended took what it had waited with it.
    const auto waited = std::max(Duration{}, *delay - *delay_before_);
    judge(std::chrono::duration<double>(waited).count() / seconds, ended);
  }
  begin_window(delay);
  if (threads_ == before) return std::nullopt;
  delay_before_.reset();  // the next batch starts or ends threads; judged is what comes after it
  return threads_;
}

void ThreadPace::begin_window(std::optional<Duration> delay) {
  if (!delay) delay_ = nullptr;
  delay_before_ = delay;
  computed_ = Duration{};
}

void ThreadPace::judge(double busy, SteadyTime now) {
  if (busy >= kBusy) {
    if (threads_ > 1) lower(busy, now);
    return;
  }
  const bool tried = trying_;
  trying_ = false;
  if (threads_ == granted_) {
    try_after_ = kFirstTry;
  } else if (tried || now >= next_try_) {  // where one found a core, the next may too
    ++threads_;
    trying_ = true;
  }
}

void ThreadPace::lower(double busy, SteadyTime now) {
  if (trying_) try_after_ = std::min(2 * try_after_, kLastTry);
  trying_ = false;
  next_try_ = now + try_after_;
  const auto cores = std::max(1.0, std::round(busy));
  threads_ = cores >= threads_ ? 1 : threads_ - static_cast<std::uint32_t>(cores);
}

}  // namespace berth::worker
