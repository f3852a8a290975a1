#include "tests/stress/traffic.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace berth::stress {
namespace {

constexpr std::uint64_t kShownProblems = 50;
constexpr std::uint64_t kCallsPerChannel = 300;
constexpr const char* kLost = "status 14";  // UNAVAILABLE

// After this it hangs.
Milliseconds bound_of(const Call& call) {
  constexpr Milliseconds kLate = std::chrono::seconds(120);
  auto bound = call.manners.deadline.value_or(Client::kBound);
  if (const auto* const generate = std::get_if<GenerateCall>(&call.what)) {
    const auto& request = generate->request;
    const auto most = static_cast<std::uint64_t>(bound.count());
    if (request.has_deadline_ms()) {
      bound = Milliseconds(std::min<std::uint64_t>(most, request.deadline_ms()));
    }
  }
  return bound + kLate;
}

}  // namespace

void KindCount::add(const KindCount& other) {
  for (const auto& [result, count] : other.results) results[result] += count;
  time += other.time;
  if (other.slowest <= slowest && !slowest_id.empty()) return;
  slowest = other.slowest;
  slowest_id = other.slowest_id;
}

Traffic::Traffic(Setup setup, const std::vector<Canary>& canaries)
    : setup_(std::move(setup)), canaries_(canaries) {
  if (setup_.only) {
    std::printf("%s\n", describe(random_call(*setup_.only, setup_.target)).c_str());
  }
  for (std::uint64_t thread = 0; thread < setup_.threads; ++thread) {
    threads_.emplace_back([this, thread] { run(thread); });
  }
}

Traffic::~Traffic() {
  end();
}

void Traffic::end() {
  ends_ = true;
  patience_.end();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void Traffic::run(std::uint64_t thread) {
  Place place{setup_.seed, thread, 0};
  auto client =
      std::make_unique<Client>(setup_.socket, setup_.target, canaries_, canceller_, patience_);
  std::uint64_t calls = 0;
  while (!ends_) {
    if (setup_.only) {
      if (!make(*client, *setup_.only)) return;
      continue;
    }
    const auto count = calls_at_once(place);
    if (!make_together(*client, place, count)) return;
    place.number += count;
    calls += count;
    if (calls < kCallsPerChannel) continue;
    calls = 0;
    client =
        std::make_unique<Client>(setup_.socket, setup_.target, canaries_, canceller_, patience_);
  }
}

bool Traffic::make_together(Client& client, Place first, std::uint64_t count) {
  if (count == 1) return make(client, first);
  std::atomic<bool> answered{true};
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < count; ++i) {
    threads.emplace_back([&, place = Place{first.seed, first.thread, first.number + i}] {
      if (!make(client, place)) answered = false;
    });
  }
  for (auto& thread : threads) thread.join();
  return answered;
}

bool Traffic::make(Client& client, const Place& place) {
  const auto call = std::make_shared<const Call>(random_call(place, setup_.target));
  std::uint64_t key = 0;
  {
    const std::lock_guard lock(mutex_);
    key = next_running_++;
    running_[key] = {call, Clock::now()};
  }
  const auto begun = Clock::now();
  const auto report = client.make(*call);
  const auto time = std::chrono::duration_cast<Milliseconds>(Clock::now() - begun);
  {
    const std::lock_guard lock(mutex_);
    running_.erase(key);
  }
  note(*call, report, time);
  return report.result != kLost;
}

void Traffic::note(const Call& call, const Report& report, Milliseconds time) {
  const std::lock_guard lock(mutex_);
  counts_[kind_of(call)].add({{{report.result, 1}}, time, time, call.id});
  if (report.problems.empty()) return;
  if (++problems_ > kShownProblems) return;
  std::printf("PROBLEM with %s\n", describe(call).c_str());
  for (const auto& problem : report.problems) std::printf("  %s\n", problem.c_str());
  std::fflush(stdout);
}

std::vector<std::string> Traffic::overdue() {
  std::vector<std::string> late;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, running] : running_) {
    const auto age = Clock::now() - running.begun;
    if (age > bound_of(*running.call)) late.push_back(describe(*running.call));
  }
  return late;
}

Counts Traffic::counts() {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace berth::stress
