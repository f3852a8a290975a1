#include "worker/service/call_lines.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "worker/lanes/lane_runner.h"

namespace berth::worker {
namespace {

// Deadlines further off than this are none.
constexpr std::uint64_t kMaxDeadlineMs = std::uint64_t{1000} * 60 * 60 * 24 * 365;

}  // namespace

std::optional<SteadyTime> deadline_of(const PendingCall& call) {
  const auto milliseconds = call.deadline_ms();
  if (!milliseconds) return std::nullopt;
  return call.arrived() + std::chrono::milliseconds(std::min(*milliseconds, kMaxDeadlineMs));
}

void CallLines::push(const std::shared_ptr<PendingCall>& call) {
  std::optional<Error> refused;
  {
    const std::lock_guard lock(mutex_);
    auto& queue = queue_of(call->needs_template() ? Line::kChats : Line::kOthers);
    if (stopped_) {
      refused = shutting_down();
    } else if (queue.waiting.size() >= kQueueLimit) {
      refused = Error(Reason::kQueueFull, "Too many requests wait for this model (" +
                                              std::to_string(kQueueLimit) + "); ask again later.");
    } else {
      queue.waiting.push_back(Waiting{call, deadline_of(*call)});
    }
  }
  if (refused) {
    call->on_end(std::move(*refused));
  } else {
    changed_.notify_all();
  }
}

void CallLines::sweep() {
  Ended ended;
  {
    const std::lock_guard lock(mutex_);
    const auto now = steady_now();
    for (auto& queue : queues_) sweep_queue(queue, now, ended);
  }
  tell(ended);
}

void CallLines::sweep_queue(Queue& queue, SteadyTime now, Ended& ended) {
  const auto ends = [&](const Waiting& waiting) {
    auto end = early_end<JobEnd>(waiting.call->cancelled(), waiting.deadline, now);
    if (end) ended.emplace_back(waiting.call, std::move(*end));
    return end.has_value();
  };
  if (queue.current && ends(*queue.current)) queue.current.reset();
  auto& waiting = queue.waiting;
  waiting.erase(std::remove_if(waiting.begin(), waiting.end(), ends), waiting.end());
}

void CallLines::stop() {
  Ended ended;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    for (auto& queue : queues_) {
      if (queue.current) ended.emplace_back(queue.current->call, shutting_down());
      queue.current.reset();
      for (const auto& waiting : queue.waiting) ended.emplace_back(waiting.call, shutting_down());
      queue.waiting.clear();
    }
  }
  tell(ended);
}

void CallLines::post(Line line, std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    queue_of(line).tasks.push_back(std::move(task));
  }
  changed_.notify_all();
}

bool CallLines::abandoned(Line line) {
  const std::lock_guard lock(mutex_);
  return !queue_of(line).current;
}

void CallLines::end_threads() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
}

void CallLines::tell(Ended& ended) {
  for (auto& [call, end] : ended) call->on_end(std::move(end));
}

std::optional<SteadyTime> CallLines::next_deadline() const {
  std::optional<SteadyTime> next;
  const auto consider = [&next](const Waiting& waiting) {
    if (waiting.deadline && (!next || *waiting.deadline < *next)) next = waiting.deadline;
  };
  for (const auto& queue : queues_) {
    if (queue.current) consider(*queue.current);
    for (const auto& waiting : queue.waiting) consider(waiting);
  }
  return next;
}

void CallLines::run_deadlines() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (ending_) return;
      if (const auto next = next_deadline()) {
        changed_.wait_for(lock, *next - steady_now());
      } else {
        changed_.wait(lock);
      }
    }
    sweep();
  }
}

void CallLines::run(Line line, Preparer& preparer) {
  while (true) {
    std::function<void()> task;
    Waiting waiting;
    Queue* queue = nullptr;
    {
      std::unique_lock lock(mutex_);
      queue = &queue_of(line);
      changed_.wait(lock,
                    [&] { return ending_ || !queue->tasks.empty() || !queue->waiting.empty(); });
      if (ending_) return;
      if (!queue->tasks.empty()) {
        task = std::move(queue->tasks.front());
        queue->tasks.pop_front();
      } else {
        waiting = std::move(queue->waiting.front());
        queue->waiting.pop_front();
      }
    }
    if (task) {
      task();
    } else {
      handle(*queue, waiting, preparer);
    }
  }
}

void CallLines::handle(Queue& queue, const Waiting& waiting, Preparer& preparer) {
  // The call is ours until it is the line's current; then others may end it, and gRPC's request
  // with it.
  const auto work = waiting.call->take_work();
  bool stopped = false;
  {
    const std::lock_guard lock(mutex_);
    stopped = stopped_;
    if (!stopped) queue.current = waiting;
  }
  if (stopped) {
    waiting.call->on_end(shutting_down());
    return;
  }
  sweep();  // of what happened to it meanwhile
  {
    const std::lock_guard lock(mutex_);
    if (!queue.current) return;
  }
  if (waiting.deadline) changed_.notify_all();
  work->run(preparer);
  {
    const std::lock_guard lock(mutex_);
    if (!queue.current) return;  // it has ended
    queue.current.reset();
  }
  work->deliver();
}

}  // namespace berth::worker
