// Whatever comes: every job ends exactly once, with the right text for what it asked; cells never
// exceed the pool; nobody waits for ever; cached_tokens is the truth; no scope uses another's
// state.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/worker/lanes/simulation.h"

namespace berth::worker {
namespace {

using std::chrono::milliseconds;

struct One {
  std::shared_ptr<Simulation::Sink> sink;
  std::vector<TokenId> prompt;
  std::string scope;
  std::string text;  // that it gets alone
  std::optional<SteadyTime> deadline;
};

FakeSettings any_machine() {
  FakeSettings settings;
  settings.sequences = *rc::gen::inRange<std::uint32_t>(1, 7);
  settings.window = *rc::gen::inRange<std::uint32_t>(60, 250);
  settings.cells = settings.window + *rc::gen::inRange<std::uint32_t>(0, 400);
  settings.batch = *rc::gen::inRange<std::uint32_t>(8, 100);
  settings.shares_cells = *rc::gen::arbitrary<bool>();
  settings.draft_tokens = *rc::gen::element(0U, 0U, 4U, 9U);
  settings.draft_right_percent = *rc::gen::element(0U, 60U, 90U, 100U);
  settings.prompt_speed = *rc::gen::element(0.0, 100.0, 5000.0);
  settings.generation_speed = *rc::gen::element(0.0, 20.0, 1000.0);
  return settings;
}

std::string any_beginning() {
  static const std::string kLong(120, 's');
  return kLong.substr(0, *rc::gen::element<std::size_t>(0, 3, 40, 45, 120));
}

One submit_any(Simulation& simulation) {
  const auto window = simulation.engine.facts().window;
  One one;
  const auto tail = *rc::gen::container<std::string>(rc::gen::inRange('a', 'e'));
  one.prompt = Simulation::tokens_of(any_beginning() + tail + "?");
  one.prompt.resize(std::min<std::size_t>(one.prompt.size(), window - 1));
  auto job = simulation.job(one.prompt);
  one.scope = *rc::gen::element<std::string>("", "", "other");
  job->cache_scope = one.scope;
  if (*rc::gen::arbitrary<bool>()) job->max_tokens = *rc::gen::inRange<std::uint32_t>(0, 100);
  if (*rc::gen::weightedElement<bool>({{4, false}, {1, true}})) {
    one.deadline = simulation.now() + milliseconds(*rc::gen::inRange(0, 3000));
    job->deadline = one.deadline;
  }
  const auto most = std::min<std::size_t>(job->max_tokens, window - one.prompt.size());
  one.text = FakeEngine::answer_to(one.prompt).substr(0, most);
  one.sink = std::static_pointer_cast<Simulation::Sink>(job->sink);
  if (*rc::gen::weightedElement<bool>({{4, false}, {1, true}})) {
    one.sink->room = *rc::gen::inRange<std::size_t>(0, 30);
  }
  simulation.submit(std::move(job));
  return one;
}

void something_happens(Simulation& simulation, std::vector<One>& all) {
  const auto& sink = all[*rc::gen::inRange<std::size_t>(0, all.size())].sink;
  switch (*rc::gen::inRange(0, 6)) {
    case 0:
      sink->wants_cancel = true;
      break;
    case 1:
      sink->room = *rc::gen::inRange<std::size_t>(0, 200);
      break;
    case 2:
      simulation.pass(milliseconds(*rc::gen::inRange(0, 500)));
      break;
    case 3:
      simulation.engine.keeps_nothing = *rc::gen::weightedElement<bool>({{4, false}, {1, true}});
      break;
    default:
      break;
  }
  simulation.runner.wake();
  simulation.run(*rc::gen::inRange<std::size_t>(0, 12));
}

// Most of its prompt that somebody of its scope can have left in the context.
std::size_t left_by_its_scope(const std::vector<One>& all, const One& one) {
  std::size_t most = 0;
  for (const auto& other : all) {
    if (&other == &one || other.scope != one.scope) continue;
    auto tokens = other.prompt;
    tokens.insert(tokens.end(), other.text.begin(), other.text.end());
    const auto end =
        std::mismatch(tokens.begin(), tokens.end(), one.prompt.begin(), one.prompt.end());
    most = std::max(most, static_cast<std::size_t>(end.first - tokens.begin()));
  }
  return most;
}

void check(const Simulation& simulation, const std::vector<One>& all, const One& one) {
  const auto& sink = *one.sink;
  RC_ASSERT(sink.end.has_value());
  if (sink.was_cancelled()) {
    RC_ASSERT(sink.wants_cancel);
    RC_ASSERT(one.text.starts_with(sink.text));
    return;
  }
  if (const auto* const error = sink.error()) {
    RC_ASSERT(error->reason == Reason::kDeadline);
    RC_ASSERT(one.deadline && *one.deadline <= sink.ended_at);
    RC_ASSERT(one.text.starts_with(sink.text));
    return;
  }
  const auto& result = *sink.result();
  RC_ASSERT(sink.text == one.text);
  RC_ASSERT(result.completion_tokens == one.text.size());
  RC_ASSERT(result.prompt_tokens == one.prompt.size());
  RC_ASSERT(result.cached_tokens == simulation.really_cached(sink));
  RC_ASSERT(result.cached_tokens < result.prompt_tokens);
  RC_ASSERT(result.cached_tokens <= left_by_its_scope(all, one));
  RC_ASSERT(result.accepted_tokens <= result.drafted_tokens);
}

RC_GTEST_PROP(Lanes, M4_S2_S8_EveryJobEndsOnceWithItsText, ()) {
  Simulation simulation(any_machine());
  std::vector<One> all;
  const auto count = *rc::gen::inRange(1, 25);
  for (int i = 0; i < count; ++i) {
    all.push_back(submit_any(simulation));
    simulation.run(*rc::gen::inRange<std::size_t>(0, 8));
    if (*rc::gen::arbitrary<bool>()) something_happens(simulation, all);
  }
  for (const auto& one : all) one.sink->room = SIZE_MAX;
  simulation.run();
  for (const auto& one : all) check(simulation, all, one);
  RC_ASSERT(simulation.violations.empty());
  RC_ASSERT(simulation.runner.activity().active == 0U);
  RC_ASSERT(simulation.runner.activity().waiting == 0U);
}

// A stop at any moment ends what is left, once.
RC_GTEST_PROP(Lanes, S1_StopEndsEveryJobOnce, ()) {
  Simulation simulation(any_machine());
  std::vector<One> all;
  const auto count = *rc::gen::inRange(1, 12);
  for (int i = 0; i < count; ++i) {
    all.push_back(submit_any(simulation));
    simulation.run(*rc::gen::inRange<std::size_t>(0, 8));
  }
  simulation.finish();
  for (const auto& one : all) RC_ASSERT(one.sink->end.has_value());
  RC_ASSERT(simulation.violations.empty());
}

}  // namespace
}  // namespace berth::worker
